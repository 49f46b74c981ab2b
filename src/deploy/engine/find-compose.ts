import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { userHome } from '../../lib/index.ts';
import { DeployError } from '../errors.ts';
import type { Environment } from './child-environment.ts';
import type { FoundEngine } from './engine.ts';
import type { RunResult } from './types.ts';

/** Runs a program and returns its result. */
export type Ask = (program: string, args: readonly string[], extra?: Environment) => Promise<RunResult>;

type FoundCompose = Pick<FoundEngine, 'compose' | 'composeProgram'>;

export interface ComposeSearch {
  readonly program: string;
  readonly kind: 'docker' | 'podman';
  readonly env: Environment;
  readonly extra: Environment;
}

/** Where docker looks for its plugins: one of them works without docker, too. */
const pluginDirectories = [
  '/usr/local/lib/docker/cli-plugins',
  '/usr/local/libexec/docker/cli-plugins',
  '/usr/lib/docker/cli-plugins',
  '/usr/libexec/docker/cli-plugins',
];

/** @throws DeployError composeMissing, with what to install */
export async function findCompose(ask: Ask, search: ComposeSearch): Promise<FoundCompose> {
  const candidates = programsOf(search);
  let outdated: string | null = null;
  for (const composeProgram of candidates) {
    const [command, ...words] = composeProgram;
    const version = versionOf(await unlessMissing(ask(command, [...words, 'version', '--short'], search.extra)));
    if (version === null) continue;
    if (isAtLeast(version, '2.0')) return { compose: { version }, composeProgram };
    outdated ??= version;
  }
  throw composeMissing(search, outdated);
}

function programsOf({ program, env }: ComposeSearch): (readonly [string, ...string[]])[] {
  const own = env['DOCKER_CONFIG'] ?? (env['HOME'] === undefined ? undefined : join(userHome(env), '.docker'));
  const directories = [...(own === undefined ? [] : [join(own, 'cli-plugins')]), ...pluginDirectories];
  const plugins = directories.map((directory) => join(directory, 'docker-compose')).filter((file) => existsSync(file));
  const ofDocker = [['docker', 'compose'], ['docker-compose']] as const;
  return program === 'docker' ? [...ofDocker] : [['docker-compose'], ...plugins.map((plugin) => [plugin] as const)];
}

/** Without the plugin, docker prints its own help or complains of the option; only a version is an answer. */
function versionOf(answer: RunResult | null): string | null {
  return answer === null || answer.exitCode !== 0 ? null : versionIn(answer.stdout);
}

async function unlessMissing(asked: Promise<RunResult>): Promise<RunResult | null> {
  try {
    return await asked;
  } catch (error) {
    if (error instanceof DeployError && error.code === 'engineMissing') return null;
    throw error;
  }
}

function composeMissing({ kind }: ComposeSearch, outdated: string | null): DeployError {
  const seen = outdated === null ? 'Compose is not installed' : `Compose ${outdated} is too old`;
  if (kind === 'podman') {
    return new DeployError(
      'composeMissing',
      `${seen}: with podman, Compose v2 is needed.`,
      'Install the program docker-compose, version 2 (Debian 13: apt-get install docker-compose).',
    );
  }
  return new DeployError(
    'composeMissing',
    `${seen}: Compose v2 is needed.`,
    'Install it: apt-get install docker-compose-plugin (packages of Docker), docker-compose-v2 (Ubuntu) or docker-compose (Debian 13)',
  );
}

/** `28.2.2`, `v2.40.3-3`, `podman version 4.3.1`: the first number with a dot in a text, null without one. */
export function versionIn(text: string): string | null {
  return /(?<![\d.])\d+\.\d+(?:\.\d+)?/.exec(text)?.[0] ?? null;
}

/** Whether `version` is `least` or later. */
export function isAtLeast(version: string, least: string): boolean {
  const [ours, theirs] = [numbersOf(version), numbersOf(least)];
  const differs = theirs.findIndex((number, at) => (ours[at] ?? 0) !== number);
  return differs === -1 || (ours[differs] ?? 0) > (theirs[differs] ?? 0);
}

const numbersOf = (version: string): number[] => version.split('.').map(Number);
