import { runGit } from '../../git/index.ts';

/** A git command that failed. The message is the reason that git gave. */
export class GitFailure extends Error {
  override readonly name = 'GitFailure';
}

/** Runs git and returns its output. @throws GitFailure */
export type Git = (
  args: readonly string[],
  options: {
    readonly cwd: string;
    readonly index?: string;
    /** Standard input. */
    readonly input?: string;
  },
) => Promise<string>;

const timeoutMs = 120_000;
/** Paths of a large repository. */
const maxPrinted = 64 * 2 ** 20;
const author = { name: 'Oratorio', email: 'oratorio@localhost' };

/** Nothing that the repository names runs: no hook, no filter, no transport. @param env without keys; its `PATH` finds git */
export const gitIn =
  (env: Readonly<Record<string, string>>): Git =>
  async (args, { cwd, index, input }) => {
    const printed: Buffer[] = [];
    let [length, said] = [0, ''];
    const { exitCode } = await runGit({
      ...{ args, cwd, env, workspacePath: cwd, convertsFiles: true, stdin: input },
      // The workspace may belong to another user: this one has trusted it.
      config: [['safe.directory', cwd]],
      variables: {
        ...{ GIT_AUTHOR_NAME: author.name, GIT_AUTHOR_EMAIL: author.email },
        ...{ GIT_COMMITTER_NAME: author.name, GIT_COMMITTER_EMAIL: author.email },
        ...(index !== undefined && { GIT_INDEX_FILE: index }),
      },
      timeoutMs,
      stdout: (chunk) => {
        length += chunk.length;
        if (length <= maxPrinted) printed.push(chunk);
      },
      stderr: (chunk) => {
        said = (said + chunk.toString()).slice(-500);
      },
    }).catch((error: unknown) => {
      const { code, message } = error as NodeJS.ErrnoException;
      throw new GitFailure(`git cannot be run (${code ?? message})`);
    });
    if (exitCode !== 0) throw new GitFailure(reasonIn(said) || `git ${args[0]} ended with ${exitCode}`);
    if (length > maxPrinted) throw new GitFailure(`git ${args[0]} printed more than ${maxPrinted} bytes`);
    return Buffer.concat(printed).toString().trim();
  };

/** Advice may follow the line with the reason: for a directory on a file system of its own, that git looks no further up. */
function reasonIn(said: string): string {
  const lines = said.trim().split('\n');
  return lines.findLast((line) => line.startsWith('fatal: ')) ?? lines.at(-1) ?? '';
}
