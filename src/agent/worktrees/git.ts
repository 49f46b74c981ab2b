import { runProgram } from '../../supervise/index.ts';

/** A git command that failed. The message is the reason that git gave. */
export class GitFailure extends Error {
  override readonly name = 'GitFailure';
}

/** Runs git and returns what it prints. @throws GitFailure */
export type Git = (
  args: readonly string[],
  options: { readonly cwd: string; readonly index?: string },
) => Promise<string>;

const timeoutMs = 120_000;
const maxPrinted = 100_000;
/** Nothing of the repository runs but its filters, which make the files. */
const quiet = ['core.hooksPath=/dev/null', 'core.fsmonitor=false', 'gc.auto=0', 'commit.gpgSign=false'];
const author = { name: 'Oratorio', email: 'oratorio@localhost' };

/** @param env without keys; its `PATH` finds git */
export const gitIn =
  (env: Readonly<Record<string, string>>): Git =>
  async (args, { cwd, index }) => {
    let [printed, said] = ['', ''];
    const { exitCode } = await runProgram({
      program: 'git',
      args: [...quiet.flatMap((setting) => ['-c', setting]), ...args],
      cwd,
      env: {
        ...env,
        ...{ GIT_AUTHOR_NAME: author.name, GIT_AUTHOR_EMAIL: author.email },
        ...{ GIT_COMMITTER_NAME: author.name, GIT_COMMITTER_EMAIL: author.email },
        ...{ GIT_TERMINAL_PROMPT: '0', GIT_EDITOR: 'true', LC_ALL: 'C.UTF-8' },
        ...(index !== undefined && { GIT_INDEX_FILE: index }),
      },
      timeoutMs,
      stdout: (chunk) => {
        printed = (printed + chunk.toString()).slice(0, maxPrinted);
      },
      stderr: (chunk) => {
        said = (said + chunk.toString()).slice(-500);
      },
    }).catch((error: unknown) => {
      throw new GitFailure(`git cannot be run (${(error as NodeJS.ErrnoException).code ?? 'unknown reason'})`);
    });
    if (exitCode !== 0) throw new GitFailure(reasonIn(said) || `git ${args[0]} ended with ${exitCode}`);
    return printed.trim();
  };

/** Advice may follow the line with the reason: for a directory on a file system of its own, that git looks no further up. */
function reasonIn(said: string): string {
  const lines = said.trim().split('\n');
  return lines.findLast((line) => line.startsWith('fatal: ')) ?? lines.at(-1) ?? '';
}
