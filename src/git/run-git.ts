import { type ProgramEnd, type ProgramRun, runProgram } from '../supervise/index.ts';
import { type GitEnvironmentOptions, type GitSetting, gitEnvironment } from './environment.ts';

/** One git command in a directory. */
export interface GitRun extends Omit<ProgramRun, 'program' | 'cwd' | 'group'>, GitEnvironmentOptions {
  readonly cwd: string;
  /** Finds git with its `PATH`: see `gitEnvironment`. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Variables of git for this command, as `GIT_INDEX_FILE`. */
  readonly variables?: Readonly<Record<string, string>> | undefined;
  /**
   * The command reads or writes files of the working tree: no filter of the repository takes part. `add` compares submodules with
   * their own filters: leave them out of its paths. In another worktree, other settings may hold: run the command there.
   */
  readonly convertsFiles?: boolean;
}

/**
 * Runs git to its end with the environment of `gitEnvironment`.
 *
 * @throws the system's error for a git that cannot be started
 */
export async function runGit(run: GitRun): Promise<ProgramEnd> {
  const emptied = run.convertsFiles ? await emptiedSettings(run) : [];
  return start({ ...run, config: [...(run.config ?? []), ...emptied] });
}

function start({ env, variables, ...run }: GitRun): Promise<ProgramEnd> {
  return runProgram({ ...run, program: 'git', env: { ...gitEnvironment(env, run), ...variables } });
}

const maxListedBytes = 4 * 2 ** 20;
const filterName = /^filter\.(.+)\.[a-z]+$/s;
const submoduleName = /^submodule\.(.+)\.[a-z]+$/is;

/** Settings that empty each filter that a repository names, and leave out changed files of its submodules. */
async function emptiedSettings(run: GitRun): Promise<GitSetting[]> {
  const names = [
    ...(await settingNames(run, [])),
    ...(await settingNames(run, ['--file', '.gitmodules', '--no-includes'])),
  ];
  const matches = (pattern: RegExp) => [...new Set(names.flatMap((name) => pattern.exec(name)?.[1] ?? []))];
  return [
    ...matches(filterName).flatMap((name): GitSetting[] => [
      [`filter.${name}.clean`, ''],
      [`filter.${name}.smudge`, ''],
      [`filter.${name}.process`, ''],
      [`filter.${name}.required`, 'false'],
    ]),
    ...matches(submoduleName).map((name): GitSetting => [`submodule.${name}.ignore`, 'dirty']),
  ];
}

/** Names of all settings that hold in the directory, includes among them; none where the file is missing. */
async function settingNames({ stdin, stdout, stderr, ...run }: GitRun, source: readonly string[]): Promise<string[]> {
  const printed: Buffer[] = [];
  let length = 0;
  const keep = (chunk: Buffer) => {
    length += chunk.length;
    if (length <= maxListedBytes) printed.push(chunk);
  };
  await start({ ...run, args: ['config', '--list', '-z', '--name-only', ...source], stdout: keep });
  if (length > maxListedBytes) throw new Error('the configuration of the repository is too large');
  return Buffer.concat(printed).toString().split('\0');
}
