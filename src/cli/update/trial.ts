import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { discoverHub } from '../../client/index.ts';
import { runProgram } from '../../supervise/index.ts';
import { CliError } from '../errors.ts';
import { endHub } from './replace-hub.ts';

/** Time limit of each command in a trial. */
const stepMs = 60_000;
const shownCharacters = 400;

interface Trial {
  /** Directory of the version. */
  readonly directory: string;
  readonly version: string;
  /** Directory for the home and the workspace of the trial. Created here. */
  readonly place: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly signal: AbortSignal;
}

/** Home of Oratorio in a trial. */
const trialHome = (place: string): string => join(place, 'home');

/**
 * Tries a version before its first use, in a temporary home and workspace without keys: starts a Hub and an agent server, and runs
 * one turn of the demo model.
 * @throws CliError when a step fails
 */
export async function tryVersion({ directory, version, place, env, signal }: Trial): Promise<void> {
  mkdirSync(place);
  const workspace = join(place, 'workspace');
  const variables = ['PATH', 'HOME', 'LANG', 'TMPDIR', 'XDG_CACHE_HOME'].map((name) => [name, env[name]] as const);
  const own = { ...Object.fromEntries(variables), ORATORIO_HOME: trialHome(place) };
  const oratorio = async (...args: readonly string[]): Promise<string> => {
    let [stdout, text] = ['', ''];
    const run = { program: join(directory, 'bin', 'oratorio'), args, env: own, cwd: place, timeoutMs: stepMs, signal };
    const end = await runProgram({
      ...run,
      stdout: (chunk) => {
        stdout += chunk;
        text += chunk;
      },
      stderr: (chunk) => {
        text += chunk;
      },
    }).catch((error: Error) => {
      throw failure(args, error.message);
    });
    signal.throwIfAborted();
    if (end.exitCode !== 0)
      throw failure(args, text.trim().slice(-shownCharacters) || `it failed with exit code ${end.exitCode}`);
    return stdout.trim();
  };
  const failure = (args: readonly string[], reason: string) =>
    new CliError(
      'unhealthy',
      `Oratorio ${version} does not work on this machine: \`oratorio ${args[0]}\`: ${reason}`,
      'Nothing was changed: the present version stays in use.',
      'trialFailed',
    );
  const found = await oratorio('version');
  if (found !== version) throw failure(['version'], `it reports version ${found}`);
  try {
    await oratorio('up', workspace, '--init', '--no-follow');
    await oratorio('exec', '--workspace', workspace, 'hello');
  } finally {
    await endTrial(place);
  }
}

/** Ends the Hub of a trial, also after its update was killed or interrupted. */
export async function endTrial(place: string): Promise<void> {
  const signal = AbortSignal.timeout(stepMs);
  const found = await discoverHub({ home: trialHome(place), signal });
  if (found.kind === 'found') await endHub(found.lock, signal);
}
