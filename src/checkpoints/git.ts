import { runGit } from '../git/index.ts';
import type { RunGit } from './ignored.ts';

const timeoutMs = 60_000;
/** Bytes of a list of an index of 200,000 entries with long paths. */
const maxPrinted = 64 * 2 ** 20;

/** Runs git in a tree; starts no program that its repository names. @param env without keys; its `PATH` finds git */
export const runGitIn =
  (root: string, env: Readonly<Record<string, string>>): RunGit =>
  async (args, input, index) => {
    const printed: Buffer[] = [];
    let length = 0;
    try {
      const { exitCode, cause } = await runGit({
        ...{ args, cwd: root, env, workspacePath: root },
        variables: index === undefined ? {} : { GIT_INDEX_FILE: index },
        stdin: Buffer.from(input, 'latin1'),
        timeoutMs,
        stdout: (chunk) => {
          length += chunk.length;
          if (length <= maxPrinted) printed.push(chunk);
        },
      });
      // 1: git ignores none of these paths.
      const isGood = exitCode === 0 || (exitCode === 1 && args[0] === 'check-ignore');
      if (cause !== 'exited' || !isGood || length > maxPrinted) return undefined;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
      throw error;
    }
    return Buffer.concat(printed).toString('latin1');
  };
