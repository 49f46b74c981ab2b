/** A Docker engine of our own, in the namespaces of the run. */
import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, existsSync, mkdirSync, openSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { run } from '../deploy/run.ts';
import { composeV2 } from '../deploy/tools.ts';

export interface TestEngine {
  /** How `docker` and `docker compose` find it. */
  readonly environment: Readonly<Record<string, string>>;
  readonly version: string;
  /** Name of the storage driver. */
  readonly storage: string;
  /** Ends every container, then the engine. */
  stop(): Promise<void>;
}

const startMs = 120_000;
const stopMs = 60_000;
const pollMs = 100;

/** File with the process id of the engine; missing when it has ended in order. */
const pidFile = (directory: string): string => join(directory, 'engine.pid');

/** Signals the engine of a run, whichever process has started it. */
export function signalEngine(directory: string, signal: NodeJS.Signals): void {
  process.kill(Number(readFileSync(pidFile(directory), 'utf8')), signal);
}

/** Kills it as a crash would. Its containers may run on; `startEngine` starts it again. */
export function killEngine(directory: string): void {
  signalEngine(directory, 'SIGKILL');
  // `containerd` dies with it. In these namespaces both stay zombies, which the next engine would take for running processes.
  for (const file of [pidFile(directory), join(directory, 'exec/containerd/containerd.pid')])
    rmSync(file, { force: true });
}

/**
 * Starts one; its data is below `directory`, its containers are in the cgroup `cgroup`. Starts it again after it was killed.
 *
 * @param more further arguments
 * @throws Error with its log
 */
export async function startEngine(
  directory: string,
  cgroup: string,
  more: readonly string[] = [],
): Promise<TestEngine> {
  const at = (name: string): string => join(directory, name);
  for (const name of ['engine', 'exec', 'docker/cli-plugins']) mkdirSync(at(name), { recursive: true });
  const plugin = at('docker/cli-plugins/docker-compose');
  if (!existsSync(plugin)) symlinkSync(await composeV2(), plugin);
  const environment = { DOCKER_HOST: `unix://${at('engine.sock')}`, DOCKER_CONFIG: at('docker') };
  const storage = (await canOverlay(directory)) ? 'overlay2' : 'vfs';
  const words = [
    ...['--data-root', at('engine'), '--exec-root', at('exec'), '--pidfile', pidFile(directory)],
    ...['--host', environment.DOCKER_HOST, '--storage-driver', storage, '--cgroup-parent', `/${cgroup}`],
    // Networks of compositions only: none of them is the same for every container.
    '--bridge=none',
    ...more,
  ];
  const log = at('engine.log');
  const output = openSync(log, 'a');
  // Outlives a test that has started it.
  const daemon = spawn('dockerd', words, { stdio: ['ignore', output, output], detached: true }).on('error', () => {});
  daemon.unref();
  closeSync(output);
  const version = await answers(daemon, environment, log);
  return { environment, version, storage, stop: () => stopEngine(directory) };
}

/** Overlays do not lie on every file system, e.g. not on another overlay: copies do, and take longer. */
export async function canOverlay(directory: string): Promise<boolean> {
  const at = (name: string): string => join(directory, 'trial', name);
  for (const name of ['lower', 'upper', 'work', 'merged']) mkdirSync(at(name), { recursive: true });
  const options = ['lower', 'upper', 'work'].map((name) => `${name}dir=${at(name)}`);
  const merged = at('merged');
  const mounted = await run('mount', ['-t', 'overlay', 'overlay', '-o', options.join(','), merged], {
    timeoutMs: 10_000,
  });
  if (mounted.exitCode !== 0) return false;
  await run('umount', [merged], { timeoutMs: 10_000 });
  return true;
}

async function answers(daemon: ChildProcess, env: Readonly<Record<string, string>>, log: string): Promise<string> {
  const deadline = Date.now() + startMs;
  while (daemon.exitCode === null && daemon.pid !== undefined && Date.now() < deadline) {
    const asked = await run('docker', ['version', '--format', '{{.Server.Version}}'], {
      timeoutMs: 10_000,
      env: { ...process.env, ...env },
    });
    if (asked.exitCode === 0) return asked.stdout.trim();
    await pause(pollMs);
  }
  daemon.kill('SIGKILL');
  throw new Error(`✖ dockerd did not start:\n${readFileSync(log, 'utf8').split('\n').slice(-20).join('\n')}`);
}

/** Ends every container, then the engine, in order. */
export async function stopEngine(directory: string): Promise<void> {
  if (!existsSync(pidFile(directory))) return;
  signalEngine(directory, 'SIGTERM');
  const deadline = performance.now() + stopMs;
  while (existsSync(pidFile(directory)) && performance.now() < deadline) await pause(pollMs);
  if (existsSync(pidFile(directory))) signalEngine(directory, 'SIGKILL');
}
