import { statSync } from 'node:fs';
import { join } from 'node:path';

/** Usual sockets of engines, rootless engines first. */
export function usualSockets(env: Readonly<Record<string, string | undefined>>): string[] {
  const runtime = env['XDG_RUNTIME_DIR'];
  const own = runtime === undefined ? [] : [join(runtime, 'podman/podman.sock'), join(runtime, 'docker.sock')];
  return [...own, '/run/docker.sock', '/var/run/docker.sock', '/run/podman/podman.sock'];
}

/** Socket of the engine: the configured socket, else the first that exists; undefined if none exists. */
export function engineSocket(chosen: string, env: Readonly<Record<string, string | undefined>>): string | undefined {
  if (chosen !== '') return chosen.replace(/^unix:\/\//, '');
  const named = env['DOCKER_HOST'];
  if (named?.startsWith('unix://')) return named.slice('unix://'.length);
  return usualSockets(env).find((path) => statSync(path, { throwIfNoEntry: false })?.isSocket());
}
