import { basename } from 'node:path';
import { findProgram } from '../../../lib/index.ts';
import { childEnvironment, markerVariable } from '../../../supervise/index.ts';
import { type EnvironmentSettings, isSecret, newMarker } from './environment.ts';
import { runCommand } from './run-command.ts';

type Variables = Readonly<Record<string, string>>;

export interface ShellSetupOptions {
  /** `Tools.Shell.Setup`: commands for a login shell. */
  readonly setup: string;
  /** Limits one capture, milliseconds. */
  readonly timeoutMs: number;
  readonly settings: EnvironmentSettings;
  /** Called with what went wrong; commands run all the same. */
  readonly onProblem: (problem: string) => void;
}

/**
 * Variables that a login shell has in a directory: those of tool chains from the user's profile, and all that direnv, mise, a virtual
 * environment and `Tools.Shell.Setup` change. Captured once per directory, with the first command. Runs files of the directory: only for
 * trusted workspaces.
 */
export class ShellEnvironment {
  readonly #options: ShellSetupOptions;
  readonly #known = new Map<string, Promise<Variables>>();

  constructor(options: ShellSetupOptions) {
    this.#options = options;
  }

  /**
   * Never rejects. `PATH` has only the directories that are to stand before those of the server.
   *
   * @param directory absolute; worktrees have environments of their own
   */
  of(directory: string): Promise<Variables> {
    let known = this.#known.get(directory);
    if (!known) {
      known = this.#capture(directory).catch((error: unknown) => {
        this.#options.onProblem(`the environment of the login shell is not used: ${(error as Error).message}`);
        return {};
      });
      this.#known.set(directory, known);
      const [oldest] = this.#known.keys();
      if (this.#known.size > maxDirectories && oldest !== undefined) this.#known.delete(oldest);
    }
    return known;
  }

  /** @throws Error when the shell does not end as it should */
  async #capture(directory: string): Promise<Variables> {
    const { setup, settings, timeoutMs, onProblem } = this.#options;
    const { environment, passEnvironment } = settings;
    const marker = newMarker(environment);
    const border = `-- ${marker} --`;
    const shell = shellOf(environment);
    let printed = '';
    let said = '';
    const { cause, exitCode } = await runCommand({
      argv: [shell, '-l', '-c', script(basename(shell)), 'oratorio', setup, border],
      cwd: directory,
      env: {
        ...childEnvironment(environment, { pass: passEnvironment }),
        TERM: 'dumb',
        SHLVL: '1',
        [markerVariable]: marker,
      },
      ...{ marker, timeoutMs, signal: never },
      onText: (text) => {
        printed += text.slice(0, maxPrinted - printed.length);
      },
      onErrorText: (text) => {
        said = (said + text).slice(-maxSaid);
      },
    });
    if (cause === 'timedOut') throw new Error(`it took longer than ${timeoutMs} ms`);
    const [, login, prepared, status] = printed.split(border);
    if (login === undefined || prepared === undefined || status === undefined)
      throw new Error(`the shell ended early, with ${exitCode}: ${said.trim()}`);
    if (Number(status) !== 0) onProblem(`Tools.Shell.Setup ended with ${Number(status)}: ${said.trim()}`);
    return this.#merge(variablesIn(login), variablesIn(prepared));
  }

  /** Of the profile what every command may have, of the project everything that it changed; never a secret. */
  #merge(login: Variables, prepared: Variables): Variables {
    const { settings } = this.#options;
    const { environment, passEnvironment } = settings;
    const ofProfile = childEnvironment(login, { pass: passEnvironment });
    const ofProject = Object.entries(prepared).filter(([name, value]) => login[name] !== value);
    const merged = { ...ofProfile, ...Object.fromEntries(ofProject) };
    const kept = Object.entries(merged).filter(
      ([name, value]) => !shellsOwn.has(name) && !isSecret(name, value, settings),
    );
    return { ...Object.fromEntries(kept), PATH: addedDirectories(merged['PATH'], environment['PATH']) };
  }
}

const maxDirectories = 32;
const maxPrinted = 1_000_000;
const maxSaid = 500;
const never = new AbortController().signal;

/** Variables that describe the shell itself, or that every command gets set anyway. */
const shellsOwn: ReadonlySet<string> = new Set(
  'PWD OLDPWD SHLVL _ HOME USER LOGNAME SHELL TERM PS1 PS2 PROMPT BASH_ENV ENV LD_PRELOAD MAIL PATH'.split(' '),
);

/** The user's login shell where it is one of the two that the script is for. */
function shellOf({ SHELL, PATH }: EnvironmentSettings['environment']): string {
  if (SHELL !== undefined && ['bash', 'zsh'].includes(basename(SHELL))) return SHELL;
  return findProgram('bash', PATH) ?? '/bin/sh';
}

/** Prints the variables before and after the project's own preparation, and the exit code of the setup. Its words go to standard error. */
const script = (shell: string): string => `
border() { printf '%s' "$1"; }
border "$2"; env -0; border "$2"
{
  command -v direnv >/dev/null && eval "$(direnv export ${shell})"
  command -v mise >/dev/null && eval "$(mise env -s ${shell})"
  if [ -z "$VIRTUAL_ENV" ] && [ -f .venv/bin/activate ]; then . .venv/bin/activate; fi
  eval "$1"
  status=$?
} >&2
env -0; border "$2"; printf '%s' "$status"
`;

function variablesIn(text: string): Variables {
  const pairs = text.split('\0').map((line) => /^([A-Za-z_]\w*)=([\s\S]*)$/.exec(line));
  return Object.fromEntries(pairs.flatMap((pair) => (pair ? [[pair[1] ?? '', pair[2] ?? '']] : [])));
}

/** Directories of a path that the other one lacks, as a path. */
const addedDirectories = (path = '', other = ''): string => {
  const known = new Set(other.split(':'));
  return path
    .split(':')
    .filter((directory) => directory !== '' && !known.has(directory))
    .join(':');
};
