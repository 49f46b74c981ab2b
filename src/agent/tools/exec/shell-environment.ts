import { existsSync } from 'node:fs';
import { basename, join } from 'node:path';
import { findProgram, messageOf } from '../../../lib/index.ts';
import { childEnvironment, markerVariable, outsideEnvironment, searchPathOutside } from '../../../supervise/index.ts';
import { type CommandPlace, findPlace, type PlaceSettings, workspaceSandbox } from './command-place.ts';
import { type EnvironmentSettings, isSecret, newMarker } from './environment.ts';
import { innerVariables } from './inner-variables.ts';
import { runCommand } from './run-command.ts';

type Variables = Readonly<Record<string, string>>;

interface LoginShell {
  readonly variables: Variables;
  /** Definitions, for a shell. */
  readonly functions: string;
}

interface ShellRun {
  /** Sandbox of the shell. */
  readonly sandbox?: CommandPlace;
  /** Options of the shell. */
  readonly words?: readonly string[];
  readonly script: string;
  readonly setup?: string;
  readonly cwd: string;
  readonly env: Variables;
  readonly stdin?: string;
  /** Number of parts, each behind a border. */
  readonly parts: number;
}

export interface ShellSetupOptions {
  /** `Tools.Shell.Setup`: commands for a shell. */
  readonly setup: string;
  /** Limits each of the two shells, milliseconds. */
  readonly timeoutMs: number;
  readonly settings: EnvironmentSettings;
  /** Sandbox for the part of the project. */
  readonly place: PlaceSettings;
  /** Called with a problem; commands still run. */
  readonly onProblem: (problem: string) => void;
}

/**
 * Variables of commands in a directory: those of tool chains from the user's profile, and all that direnv, mise, a virtual environment and
 * `Tools.Shell.Setup` change. Captured once per directory, with the first command.
 *
 * The profile runs in the user's home, as in any terminal. Nothing of the directory runs outside of the sandbox: a virtual environment is
 * read, and direnv, mise and the setup run in the sandbox or not at all.
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
      known = this.#capture(directory);
      this.#known.set(directory, known);
      const [oldest] = this.#known.keys();
      if (this.#known.size > maxDirectories && oldest !== undefined) this.#known.delete(oldest);
    }
    return known;
  }

  async #capture(directory: string): Promise<Variables> {
    const { environment, passEnvironment } = this.#options.settings;
    const none: LoginShell = { variables: childEnvironment(environment, { pass: passEnvironment }), functions: '' };
    const login = await this.#login(directory).catch((error: unknown) => this.#failed(error, none));
    const activated = { ...login.variables, ...virtualEnvironment(directory, login.variables) };
    const prepared = await this.#prepare(directory, activated, login.functions).catch((error: unknown) =>
      this.#failed(error, activated),
    );
    return this.#merge(login.variables, prepared);
  }

  #failed<T>(error: unknown, instead: T): T {
    this.#options.onProblem(`the environment of the shell is not used: ${messageOf(error)}`);
    return instead;
  }

  /** Runs the profile. No program of the directory is on its `PATH`. @throws Error when the shell ends early */
  async #login(directory: string): Promise<LoginShell> {
    const { environment, passEnvironment } = this.#options.settings;
    const own = childEnvironment(outsideEnvironment(directory, environment), { pass: passEnvironment });
    const [variables = '', functions = ''] = await this.#shell({
      words: ['-l'],
      script: loginScript,
      cwd: environment['HOME'] ?? '/',
      env: own,
      parts: 2,
    });
    return { variables: variablesIn(variables), functions };
  }

  /** Runs the tools of the project in the sandbox. @returns all variables afterwards. @throws like `#login` */
  async #prepare(directory: string, before: Variables, functions: string): Promise<Variables> {
    const { setup, settings, place, onProblem } = this.#options;
    const tools = ['direnv', 'mise'].filter((name) => findProgram(name, before['PATH'], []) !== undefined);
    if (setup === '' && tools.length === 0) return before;
    const at = { ...place, environment: { ...place.environment, ...before } };
    const sandbox = await findPlace(directory, at, { workspacePath: directory, threadId: '' });
    if (typeof sandbox === 'string' || !sandbox.isSandboxed) {
      const { reason } = await workspaceSandbox(place, directory);
      const left = [...tools, ...(setup === '' ? [] : ['Tools.Shell.Setup'])].join(', ');
      onProblem(
        `not run, because the project's part of the environment is made in the sandbox only: ${left} (${reason})`,
      );
      return before;
    }
    try {
      const env = Object.fromEntries(
        Object.entries(before).filter(([name, value]) => !isSecret(name, value, settings)),
      );
      const [first = '', last = '', status = '', said = ''] = await this.#shell({
        sandbox,
        script: projectScript(basename(shellOf(settings.environment, directory))),
        ...{ cwd: directory, env: { ...env, ...sandbox.env }, stdin: functions, parts: 3, setup },
      });
      if (Number(status) !== 0) onProblem(`Tools.Shell.Setup ended with ${Number(status)}: ${said.trim()}`);
      const unchanged = variablesIn(first);
      const changed = Object.entries(variablesIn(last)).filter(([name, value]) => unchanged[name] !== value);
      return { ...before, ...Object.fromEntries(changed) };
    } finally {
      await sandbox.leave();
    }
  }

  /** @returns the printed parts between the borders, and the end of standard error. @throws Error when a part is missing */
  async #shell(run: ShellRun): Promise<readonly string[]> {
    const { settings, timeoutMs } = this.#options;
    const { sandbox, words = [], script, cwd, env, stdin, setup = '', parts } = run;
    const marker = newMarker(settings.environment);
    const border = `-- ${marker} --`;
    let [printed, said] = ['', ''];
    const shell = [shellOf(settings.environment, cwd), ...words, '-c', script, 'oratorio', setup, border];
    const whole = { ...env, TERM: 'dumb', SHLVL: '1', [markerVariable]: marker };
    const inner = sandbox && innerVariables(whole);
    const start = sandbox?.directory === undefined ? '' : 'cd "$0" || exit; ';
    const { cause, exitCode } = await runCommand({
      argv: inner
        ? [...sandbox.words, '/bin/sh', '-c', `${start}${inner.script}exec "$@"`, sandbox.directory ?? 'sh', ...shell]
        : shell,
      ...{ cwd, env: inner?.env ?? whole },
      ...{ marker, timeoutMs, signal: never, stdin },
      onText: (text) => {
        printed += text.slice(0, maxPrinted - printed.length);
      },
      onErrorText: (text) => {
        said = (said + text).slice(-maxSaid);
      },
    });
    if (cause === 'timedOut') throw new Error(`it took longer than ${timeoutMs} ms`);
    const between = printed.split(border).slice(1);
    if (between.length < parts) throw new Error(`the shell ended early, with ${exitCode}: ${said.trim()}`);
    return [...between.slice(0, parts), said];
  }

  /** Merges the profile's variables that every command may have and all variables that the project changed; never a secret. */
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

/** The user's login shell where it is one of the two that the scripts are for; never a program of the directory. */
function shellOf({ SHELL, PATH }: EnvironmentSettings['environment'], directory: string): string {
  if (SHELL !== undefined && ['bash', 'zsh'].includes(basename(SHELL))) return SHELL;
  return findProgram('bash', searchPathOutside(directory, PATH)) ?? '/bin/sh';
}

/** Prints the variables of the profile, and its functions. */
const loginScript = `
printf '%s' "$2"; env -0; printf '%s' "$2"
if [ -n "$ZSH_VERSION" ]; then functions; else declare -f; fi 2>/dev/null
printf '%s' "$2"
`;

/** Prints the variables before and after the project's own preparation, and the exit code of the setup. Its words go to standard error. */
const projectScript = (shell: string): string => `
border() { printf '%s' "$1"; }
eval "$(cat)" >/dev/null 2>&1
border "$2"; env -0; border "$2"
{
  command -v direnv >/dev/null && eval "$(direnv export ${shell})"
  command -v mise >/dev/null && eval "$(mise env -s ${shell})"
  eval "$1"
  status=$?
} >&2
env -0; border "$2"; printf '%s' "$status"
`;

/** Variables of the virtual environment in a directory, as its `activate` would set them. Nothing of it runs. */
function virtualEnvironment(directory: string, { VIRTUAL_ENV, PATH = '' }: Variables): Variables {
  const own = join(directory, '.venv');
  const hasOne = !VIRTUAL_ENV && existsSync(join(own, 'bin', 'activate'));
  return hasOne ? { VIRTUAL_ENV: own, PATH: `${join(own, 'bin')}:${PATH}` } : {};
}

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
