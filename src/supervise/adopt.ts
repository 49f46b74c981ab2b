import { defaults, type ProcessIdentity } from '../protocol/index.ts';
import { monotonicMs } from './clock.ts';
import { isAlive } from './identity.ts';
import { logKeeper } from './log-keeper.ts';
import { type ManagedProcess, manage, type ProcessExit } from './managed.ts';
import { ProcessTree } from './process-tree.ts';
import { logFiles } from './spawn.ts';

/** Settings for managing a process that another Hub has started. */
export interface AdoptOptions {
  readonly logDirectory: string;
  readonly marker: string;
  readonly logBytes?: number;
  /** Interval between two checks of the process: only a parent is notified of its end. */
  readonly pollMs?: number;
  /** True while another fact would show its end, upon which `poll` is called: it is checked seldom then. Default: never. */
  readonly isWatched?: () => boolean;
}

/**
 * Manages a live process that is not our child. Its end is noticed by polling, its exit code never.
 * One that has gone already, also when its pid belongs to another process now, is exited from the start; one whose state is unknown is waited for.
 */
export function adoptManaged(identity: ProcessIdentity, options: AdoptOptions): ManagedProcess {
  const { logBytes = defaults.supervise.logBytes, pollMs = defaults.supervise.adoptPollMs, isWatched } = options;
  const logs = logFiles(options.logDirectory);
  const forget = logKeeper.add(Object.values(logs), logBytes);
  let timer: NodeJS.Timeout | undefined;
  const detach = () => {
    clearInterval(timer);
    forget();
  };
  let resolve: (exit: ProcessExit) => void = () => {};
  const exited = new Promise<ProcessExit>((settle) => {
    resolve = settle;
  });
  const poll = () => {
    if (isAlive(identity) !== 'gone') return;
    detach();
    resolve({ exitCode: null, signal: null, observed: false });
  };
  let polledAt = monotonicMs();
  const tick = () => {
    if (isWatched?.() && monotonicMs() - polledAt < defaults.supervise.adoptContactPollMs) return;
    polledAt = monotonicMs();
    poll();
  };
  timer = setInterval(tick, pollMs).unref();
  poll();
  return manage({
    tree: new ProcessTree(identity, options.marker),
    logs,
    exited,
    isOurChild: () => false,
    poll,
    detach,
  });
}
