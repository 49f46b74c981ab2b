import { gitEnvironment } from '../../git/index.ts';
import { defaults } from '../defaults.ts';
import {
  childEnvironment,
  type Environment,
  isAtLeast,
  type RunOptions,
  type RunResult,
  runProgram,
  versionIn,
} from '../engine/index.ts';
import { DeployError } from '../errors.ts';

export interface GitRunOptions extends RunOptions {
  readonly cwd?: string;
  /** git and ssh may ask at the terminal of the caller for a password. */
  readonly hasTerminal?: boolean;
}

/** The host's git, with the host's credentials (specification §4.4 rule 7). */
export interface Git {
  readonly version: string;
  /** A failure is a result, not an error. */
  run(args: readonly string[], options: GitRunOptions): Promise<RunResult>;
}

const oldest = '2.30';
/** Addresses that `parseRemote` accepts; none runs a helper of its own. */
const transports = ['https', 'http', 'ssh', 'git', 'file'];

/** Variables of the caller that git and ssh may need, besides those of every child. */
const allowed = [
  'GIT_SSH',
  'GIT_SSH_COMMAND',
  'GIT_SSL_CAINFO',
  'GIT_CONFIG_GLOBAL',
  'GIT_CONFIG_SYSTEM',
  'GNUPGHOME',
] as const;
/** Variables of prompts, for users at a terminal. */
const interactive = [
  'SSH_ASKPASS',
  'GIT_ASKPASS',
  'DISPLAY',
  'WAYLAND_DISPLAY',
  'DBUS_SESSION_BUS_ADDRESS',
  'TERM',
  'GPG_TTY',
] as const;

/** @throws DeployError gitMissing when it is missing or older than 2.30 */
export async function findGit({
  env,
  signal,
}: {
  readonly env: Environment;
  readonly signal?: AbortSignal;
}): Promise<Git> {
  const run: Git['run'] = (args, { hasTerminal = false, ...options }) =>
    runProgram({
      ...options,
      program: 'git',
      args,
      name: `git ${args.find((word) => /^[a-z-]+$/.test(word)) ?? ''}`.trim(),
      env: hostsGit(env, hasTerminal),
      // Never the repository that the caller stands in: its settings would rewrite addresses.
      cwd: options.cwd ?? '/',
      hasTerminal,
    }).catch(asGitError);
  const { stdout } = await run(['--version'], { timeoutMs: defaults.timeouts.askMs, ...(signal && { signal }) });
  const version = versionIn(stdout);
  if (version !== null && isAtLeast(version, oldest)) return { version, run };
  throw new DeployError(
    'gitMissing',
    `git ${version ?? 'of an unknown version'} is too old: ${oldest} is needed.`,
    installHint,
  );
}

const installHint = 'Install it: apt-get install git';

/** Git with the configuration of the user and the system, which name credentials and proxies. */
function hostsGit(env: Environment, hasTerminal: boolean): Record<string, string> {
  const names = [...allowed, ...(hasTerminal ? interactive : [])];
  const passed = Object.fromEntries(names.map((name) => [name, env[name]]));
  // Without a terminal no user can answer: git and ssh must fail instead of waiting. ssh has no terminal in a session of its own.
  const silent = { GIT_TERMINAL_PROMPT: '0', GIT_ASKPASS: 'false', SSH_ASKPASS: 'false', GCM_INTERACTIVE: 'never' };
  return {
    ...gitEnvironment(childEnvironment(env), { hasUsersConfiguration: true, transports }),
    ...childEnvironment({}, { extra: { ...passed, ...(hasTerminal ? {} : silent) } }),
  };
}

function asGitError(error: unknown): never {
  if (error instanceof DeployError && error.code === 'engineMissing') {
    throw new DeployError('gitMissing', 'git is not installed.', installHint, { cause: error });
  }
  throw error;
}
