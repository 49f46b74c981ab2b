import { spawnSync } from 'node:child_process';
import type { ProcessIdentity } from '../protocol/index.ts';
import { findProcess, readProcess } from './identity.ts';

/** Result of a signal. `unknown`: it was not sent, because the process may be another one, or may not be signalled. */
export type SignalResult = 'sent' | 'gone' | 'unknown';

/** Signals one process, after making sure that it still is the one that is meant. The microseconds between the two are the residual risk: Node has no pidfd. */
export function signalProcess(identity: ProcessIdentity, signal: NodeJS.Signals): SignalResult {
  if (identity.pid === process.pid || identity.pid <= 1) return 'unknown';
  const entry = findProcess(identity);
  return typeof entry === 'string' ? entry : send(identity.pid, signal);
}

/** Signals a live, verified process together with the group it leads; a process that leads none, alone. */
export function signalLeader(identity: ProcessIdentity, signal: NodeJS.Signals): SignalResult {
  const entry = findProcess(identity);
  if (typeof entry === 'string') return entry;
  return entry.group === entry.pid ? sendToGroup(entry.pid, signal) : signalProcess(identity, signal);
}

/** Signals the group `leader` once led. Only for a group whose membership was verified by the caller, or for our own child that has not been reaped. */
export function sendToGroup(leader: number, signal: NodeJS.Signals): SignalResult {
  // 0 and -1 mean "my own group" and "everybody" to kill(2); and a server started beside us may lead the group we are in.
  if (leader <= 1 || leader === ownGroup()) return 'unknown';
  if (process.platform === 'win32') return endTree(leader, signal);
  return send(-leader, signal);
}

/** Whether a process group has no member at all, zombies counted as members. */
export function groupIsEmpty(leader: number): boolean {
  return process.platform !== 'win32' && leader > 1 && send(-leader, 0) === 'gone';
}

function send(target: number, signal: NodeJS.Signals | 0): SignalResult {
  try {
    process.kill(target, signal);
    return 'sent';
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ESRCH' ? 'gone' : 'unknown';
  }
}

/** Windows knows neither groups nor SIGTERM: there is only ending the tree, children first. */
function endTree(pid: number, signal: NodeJS.Signals): SignalResult {
  if (signal === 'SIGCONT') return 'sent';
  return spawnSync('taskkill', ['/pid', String(pid), '/T', '/F']).status === 0 ? 'sent' : 'gone';
}

let group: number | undefined;

/** Our own process group. We never change it, so it is read once. */
function ownGroup(): number | undefined {
  if (group === undefined) {
    const own = readProcess(process.pid);
    if (typeof own !== 'string') group = own.group;
  }
  return group;
}
