/** Another account of this machine, for tests of what it may do to this user. Only root can change to another user. */
import { type ChildProcess, type SpawnOptions, spawn } from 'node:child_process';

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
