import { existsSync } from 'node:fs';
import * as v from 'valibot';
import { defaults } from '../defaults.ts';
import { DeployError } from '../errors.ts';
import { childEnvironment, type Environment } from './child-environment.ts';
import { engineOf, type FoundEngine } from './engine.ts';
import { type Ask, findCompose } from './find-compose.ts';
import { lastLines } from './last-lines.ts';
import { parseJson } from './parse-json.ts';
import { runProgram } from './run.ts';
import type { Engine, RunResult } from './types.ts';

export interface FindOptions {
  /** Environment of the caller: search path of programs, and choice of the engine (`DOCKER_HOST`, `DOCKER_CONTEXT`). */
  readonly env: Environment;
  readonly signal?: AbortSignal;
}

/**
 * Looks for a container engine that answers, and for a composition tool: docker, else podman's socket, each with
 * Compose v2.
 * @throws DeployError engineMissing, engineUnreachable, composeMissing, each with what to do; cancelled
 */
export async function findEngine({ env, signal }: FindOptions): Promise<Engine> {
  const ask: Ask = (program, args, extra = {}) =>
    runProgram({
      program,
      args,
      name: `${program} ${args[0] ?? ''}`,
      env: childEnvironment(env, { extra }),
      timeoutMs: defaults.timeouts.askMs,
      ...(signal && { signal }),
    });
  const found = (await findDocker(ask, env)) ?? (await findPodman(ask, env));
  if (found === null) throw engineMissing();
  const compose = await findCompose(ask, {
    program: found.program,
    env,
    extra: found.extra ?? {},
    kind: found.runtime.kind,
  });
  return engineOf({ ...found, ...compose }, env);
}

type Runtime = Omit<FoundEngine, 'compose' | 'composeProgram'>;

const versionSchema = v.object({
  Server: v.nullish(
    v.object({
      Version: v.string(),
      Components: v.optional(v.array(v.object({ Name: v.string(), Version: v.string() })), []),
    }),
  ),
});

/** Null without the program. */
async function findDocker(ask: Ask, env: Environment): Promise<Runtime | null> {
  const answer = await unlessMissing(ask('docker', ['version', '--format', '{{json .}}']), 'The Docker engine');
  if (answer === null) return null;
  const parsed = v.safeParse(versionSchema, parseJson(answer.stdout));
  const server = parsed.success ? parsed.output.Server : null;
  // The program of the package podman-docker, which reaches no daemon.
  if (!server && /podman/i.test(answer.stderr)) return null;
  if (!server) throw unreachable(answer, env);
  const podman = server.Components.find(({ Name }) => /podman/i.test(Name));
  return {
    program: 'docker',
    runtime: {
      kind: podman ? 'podman' : 'docker',
      version: podman?.Version ?? server.Version,
      isRootless: await isRootless(ask),
    },
  };
}

async function isRootless(ask: Ask): Promise<boolean> {
  const { stdout } = await ask('docker', ['info', '--format', '{{json .SecurityOptions}}']);
  return stdout.includes('name=rootless');
}

const podmanSchema = v.object({
  version: v.object({ Version: v.string() }),
  host: v.object({
    security: v.object({ rootless: v.boolean() }),
    remoteSocket: v.optional(v.object({ path: v.string(), exists: v.optional(v.boolean(), false) })),
  }),
});

/** Null without the program. */
async function findPodman(ask: Ask, env: Environment): Promise<Runtime | null> {
  const answer = await unlessMissing(ask('podman', ['info', '--format', 'json']), 'Podman');
  if (answer === null) return null;
  const parsed = v.safeParse(podmanSchema, parseJson(answer.stdout));
  if (!parsed.success) {
    throw new DeployError(
      'engineUnreachable',
      `Podman does not work: ${lastLines(answer.stderr, 3)}`,
      'Run: podman info',
    );
  }
  const { version, host } = parsed.output;
  const { rootless } = host.security;
  const path = host.remoteSocket?.path.replace(/^unix:\/\//, '');
  const endpoint = env['DOCKER_HOST'] ?? (path !== undefined && existsSync(path) ? `unix://${path}` : undefined);
  if (endpoint === undefined) {
    throw new DeployError(
      'engineUnreachable',
      'Podman is there, but its socket is not: the composition tool needs it.',
      `Run: systemctl ${rootless ? '--user ' : ''}enable --now podman.socket`,
    );
  }
  return {
    program: 'podman',
    runtime: { kind: 'podman', version: version.Version, isRootless: rootless },
    extra: { DOCKER_HOST: endpoint },
  };
}

/** Resolves with the result; null when the program is missing. A timeout becomes an error that names `what`. */
async function unlessMissing(asked: Promise<RunResult>, what: string): Promise<RunResult | null> {
  try {
    return await asked;
  } catch (error) {
    if (!(error instanceof DeployError) || error.code === 'cancelled') throw error;
    if (error.code === 'engineMissing') return null;
    throw new DeployError('engineUnreachable', `${what} does not answer: ${error.message}`, 'Run: docker info', {
      cause: error,
    });
  }
}

const installHint = 'Install Docker with Compose v2: see https://docs.docker.com/engine/install/';

const engineMissing = (): DeployError =>
  new DeployError('engineMissing', 'There is no container engine on this machine (no docker, no podman).', installHint);

/** Messages of a client that cannot reach its daemon, and what to do. */
const signs: readonly { readonly sign: RegExp; readonly seen: string; readonly hint: string }[] = [
  {
    sign: /permission denied/i,
    seen: 'You may not use the Docker engine (permission denied on its socket).',
    hint: 'Add yourself to its group and log in again: sudo usermod -aG docker "$USER"',
  },
  {
    sign: /cannot connect|is the docker daemon running|connection refused|no such file/i,
    seen: 'The Docker engine is not running.',
    hint: 'Start it: sudo systemctl start docker',
  },
  {
    sign: /context .* not found|unable to resolve docker endpoint/i,
    seen: 'The Docker context that is chosen does not exist.',
    hint: 'Choose another one: docker context ls, docker context use NAME',
  },
  {
    sign: /client version .* is too|API version/i,
    seen: 'The docker program and its engine do not understand each other.',
    hint: 'Bring both to the same version.',
  },
];

function unreachable({ stderr, exitCode }: RunResult, env: Environment): DeployError {
  const said = lastLines(stderr, 3) || `exit code ${exitCode}`;
  const known = signs.find(({ sign }) => sign.test(stderr));
  const meant = env['DOCKER_HOST'] === undefined ? '' : ' DOCKER_HOST is set; is it the engine you mean?';
  return new DeployError(
    'engineUnreachable',
    `${known?.seen ?? 'The Docker engine does not answer.'} (${said})`,
    `${known?.hint ?? 'Run: docker info'}${meant}`,
  );
}
