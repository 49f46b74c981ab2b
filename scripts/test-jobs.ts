/** Decides how many test files run at a time. */
import { availableParallelism, cpus } from 'node:os';

export interface Jobs {
  /** Files that run at a time however busy the machine is. */
  readonly least: number;
  /** Cores that running files are known to take together, below which another one starts however busy the machine is. */
  readonly leastCores: number;
  /** Share of a core that a file takes, from 0 to 1. */
  readonly coreShare: (name: string) => number;
  /** Files that run at a time where all of them wait: bounds memory. */
  readonly most: number;
  /** Part of the processor time since the last call that was idle, from 0 to 1. */
  readonly idleShare: () => number;
  /** Calls `look` now and then, until the function that it returns is called. */
  readonly every: (look: () => void) => () => void;
}

/**
 * Share of the machine that is idle when one more file starts; over a run, far less stays idle. With a smaller share more files run
 * at a time and take more processor time, because each drives the data of the others out of the caches.
 */
const worthUsing = 0.1;
const lookMs = 250;

/**
 * Real processors and time. Beside the work of others no core is ever idle, and files that mostly wait would leave the run waiting
 * too: others start beside them. A quarter of the cores is enough, because a file's share leaves out its waiting.
 *
 * @param most files at a time
 * @param coreShare share of a core that a file takes, from 0 to 1
 */
export const realJobs = (most: number, coreShare: Jobs['coreShare']): Jobs => {
  let before = processorTimes();
  return {
    least: Math.min(most, availableParallelism()),
    leastCores: availableParallelism() / 4,
    coreShare,
    most,
    idleShare: () => {
      const now = processorTimes();
      const [idle, all] = [now.idle - before.idle, now.all - before.all];
      before = now;
      return all === 0 ? 0 : idle / all;
    },
    every: (look) => {
      const timer = setInterval(look, lookMs);
      return () => clearInterval(timer);
    },
  };
};

function processorTimes(): { readonly idle: number; readonly all: number } {
  const times = cpus().map((cpu) => cpu.times);
  const idle = times.reduce((sum, time) => sum + time.idle, 0);
  return { idle, all: times.reduce((sum, { user, nice, sys, irq }) => sum + user + nice + sys + irq, idle) };
}

/**
 * Runs `run` for each name, in order: `least` at a time, more of those that mostly wait, and one more whenever processor time was
 * left over. Resolves when all have ended; rejects with the first rejection.
 */
export function runTogether(
  names: readonly string[],
  run: (name: string) => Promise<void>,
  { least, leastCores, coreShare, most, idleShare, every }: Jobs,
): Promise<void> {
  const queue = [...names];
  let running = 0;
  let cores = 0;
  return new Promise((resolve, reject) => {
    const start = (name: string): void => {
      running += 1;
      cores += coreShare(name);
      run(name).then(
        () => {
          running -= 1;
          cores -= coreShare(name);
          fill();
        },
        (error) => {
          stop();
          reject(error);
        },
      );
    };
    const startNext = (): void => {
      const name = queue.shift();
      if (name !== undefined) start(name);
    };
    const fill = (): void => {
      while (queue.length > 0 && (running < least || (cores < leastCores && running < most))) startNext();
      if (running > 0) return;
      stop();
      resolve();
    };
    const stop = every(() => {
      const isIdle = idleShare() >= worthUsing;
      if (isIdle && running < most) startNext();
    });
    fill();
  });
}
