/** Another account of this machine, for tests of its access to this user. Only root can change to another user. */
import { type ChildProcess, type SpawnOptions, spawn } from 'node:child_process';
import { once } from 'node:events';

/** An id without an account; nothing on the machine belongs to it. */
export const otherUid = 54_321;

/** Whether this process may start programs of another user. Elsewhere tests give functions another uid to expect instead. */
export const canBecomeOther = process.getuid?.() === 0;

const dropRights = `process.setgroups([]);process.setgid(${otherUid});process.setuid(${otherUid});process.umask(0o022);`;

/**
 * Runs JavaScript as the other user. The process gives its rights up after Node has started, because the checkout may lie
 * in a directory that the other user cannot enter; so `code` may only load modules of Node itself.
 *
 * @param code CommonJS; its arguments are `process.argv.slice(1)`
 */
export function runAsOther(code: string, args: readonly string[] = [], options: SpawnOptions = {}): ChildProcess {
  return spawn(process.execPath, ['-e', dropRights + code, ...args], {
    stdio: ['ignore', 'pipe', 'inherit'],
    ...options,
  });
}

/** The first output of a process. @throws when it ends without one, as it does where the other user may not enter a directory */
export async function firstOutput(child: ChildProcess): Promise<string> {
  if (!child.stdout) throw new Error('the process has no output');
  const [output] = await Promise.race([once(child.stdout, 'data'), once(child.stdout, 'end')]);
  if (output === undefined) throw new Error('the process ended without output');
  return String(output);
}
