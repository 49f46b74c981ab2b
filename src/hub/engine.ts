import { setFlagsFromString } from 'node:v8';
import { monotonicMs } from '../supervise/index.ts';

/** Requests within a second with which a Hub is a busy one. One person and a hundred agent servers send a tenth of it. */
const busyRequests = 1_000;
const busyWithinMs = 1_000;

/**
 * A Hub starts without the optimising compiler (`hubFlags` of the client), whose code alone takes 6 MiB of memory and which an idle Hub does not
 * need. Once many requests come, it is turned on for good: they cost half as much then.
 *
 * @returns a function to call at each request
 */
export function optimiseUnderLoad(
  optimise: () => void = () => setFlagsFromString('--opt'),
  clock: () => number = monotonicMs,
): () => void {
  let requests = 0;
  let since = clock();
  let isOptimising = false;
  return () => {
    requests += 1;
    if (isOptimising || requests < busyRequests) return;
    const now = clock();
    isOptimising = now - since <= busyWithinMs;
    if (isOptimising) optimise();
    requests = 0;
    since = now;
  };
}

/** Pause after the last start, within which its first reports arrive. */
const restMs = 3_000;
/** Fewer leave little. */
const manyStarts = 10;

/** Collects all garbage and gives the memory back. Undefined without `--expose-gc`. */
function collector(): (() => void) | undefined {
  const { gc } = globalThis;
  return gc && (() => void gc({ type: 'major', flavor: 'last-resort' }));
}

/**
 * A start of many agent servers leaves garbage that V8 keeps for minutes, 8 MiB after a hundred of them. It is collected once no start
 * has followed for a while, which takes some 80 ms.
 *
 * @returns a function to call after each start
 */
export function collectAfterStarts(collect = collector(), pauseMs = restMs): () => void {
  let starts = 0;
  let timer: NodeJS.Timeout | undefined;
  const rest = () => {
    starts = 0;
    timer = undefined;
    collect?.();
  };
  return () => {
    starts += 1;
    if (timer) timer.refresh();
    else if (starts >= manyStarts) timer = setTimeout(rest, pauseMs).unref();
  };
}
