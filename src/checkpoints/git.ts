import { runProgram } from '../supervise/index.ts';
import type { RunGit } from './ignored.ts';

/** A turn can write the configuration of its repository: nothing that it names is run. */
const quiet = ['core.hooksPath=/dev/null', 'core.fsmonitor=false', 'protocol.allow=never', 'gc.auto=0'];
const timeoutMs = 60_000;
/** An index of 200,000 entries with long paths. */
const maxPrinted = 64 * 2 ** 20;

/** Runs git in a tree, without the configuration of the system and the user. @param env without keys; its `PATH` finds git */
export const runGitIn =
  (root: string, env: Readonly<Record<string, string>>): RunGit =>
  async (args, input, index) => {
    const printed: Buffer[] = [];
    let length = 0;
    try {
      const { exitCode, cause } = await runProgram({
        program: 'git',
        args: [...quiet.flatMap((setting) => ['-c', setting]), ...args],
        cwd: root,
        env: {
          ...env,
          ...{ GIT_OPTIONAL_LOCKS: '0', GIT_CONFIG_NOSYSTEM: '1', GIT_CONFIG_GLOBAL: '/dev/null' },
          ...(index !== undefined && { GIT_INDEX_FILE: index }),
          ...{ GIT_TERMINAL_PROMPT: '0', LC_ALL: 'C.UTF-8' },
        },
        stdin: Buffer.from(input, 'latin1'),
        timeoutMs,
        stdout: (chunk) => {
          length += chunk.length;
          if (length <= maxPrinted) printed.push(chunk);
        },
      });
      // 1: no path of these is ignored.
      const isGood = exitCode === 0 || (exitCode === 1 && args[0] === 'check-ignore');
      if (cause !== 'exited' || !isGood || length > maxPrinted) return undefined;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
      throw error;
    }
    return Buffer.concat(printed).toString('latin1');
  };
