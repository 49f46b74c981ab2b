/**
 * Checkpoints of one tree in a process of its own, whose event loop does nothing else, as that of an agent server. Arguments: workspace,
 * store, rounds. Prints the figures as one line of JSON.
 */
import { once } from 'node:events';
import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import { defaultLimits, EngineThread, WorkspaceCheckpoints } from '../../src/checkpoints/index.ts';
import type { Change } from './checkpoints-changes.ts';

const [root = '', directory = '', rounds = '5'] = process.argv.slice(2);
/** Time that a model takes at least before its first tool. */
const modelMs = 300;
const idleMs = 3_000;
const engines = new EngineThread();
const checkpoints = new WorkspaceCheckpoints({
  ...{ directory, engines, gitEnvironment: undefined },
  limits: { ...defaultLimits, freeBytes: 0 },
  rollback: () => undefined,
  isInUse: () => false,
});
const changes = new Worker(new URL('checkpoints-changes.ts', import.meta.url));
await once(changes, 'online');

const placeOf = (turnId: string) => ({ threadId: 'thread', turnId, workspacePath: root });
const timed = async (work: () => Promise<unknown> | undefined): Promise<number> => {
  const from = performance.now();
  await work();
  return performance.now() - from;
};
const packs = () => statSync(join(directory, readdirSync(directory)[0] ?? '', 'packs', '000001.pack')).size;

async function change(count: number, text: string): Promise<number> {
  changes.postMessage({ root, count, text } satisfies Change);
  const [compressed] = (await once(changes, 'message')) as [number];
  return compressed;
}

/** A turn whose model takes a while before its tool. @returns time that the tool waited, and the end of the turn */
async function turn(id: string, work: () => Promise<unknown>): Promise<{ waited: number; settled: number }> {
  const place = placeOf(id);
  checkpoints.begin(place);
  await sleep(modelMs);
  const waited = await timed(() => checkpoints.secure(place));
  await work();
  return { waited, settled: await timed(() => checkpoints.settle(place)) };
}

/** The start of a turn alone: a scan that finds nothing. */
async function scan(id: string): Promise<number> {
  const place = placeOf(id);
  checkpoints.begin(place, 'none');
  const took = await timed(() => checkpoints.secure(place));
  await checkpoints.settle(place);
  return took;
}

const delay = monitorEventLoopDelay({ resolution: 1 });

/** Lateness of a loop with nothing to do on this machine, beside a thread that is busy, as the thread of the checkpoints is. */
async function idleLateMs(): Promise<number> {
  const busy = new Worker('for (;;);', { eval: true });
  await once(busy, 'online');
  delay.enable();
  await sleep(idleMs);
  delay.disable();
  await busy.terminate();
  const late = delay.max / 1e6;
  delay.reset();
  return late;
}

const idleBlockMs = await idleLateMs();
delay.enable();
const cpu = process.cpuUsage();
const opened = placeOf('first');
checkpoints.begin(opened, 'none');
await checkpoints.secure(opened);
const first = process.cpuUsage(cpu);
await checkpoints.settle(opened);
// Young files are read again: the second scan of a tree is the first one that only compares.
await sleep(50);
await scan('settle');
const scans: number[] = [];
const commits: number[] = [];
const waits: number[] = [];
let disk = 0;
let compressed = 0;
for (let round = 0; round < Number(rounds); round += 1) {
  scans.push(await scan(`scan_${round}`));
  const before = packs();
  const { waited, settled } = await turn(`turn_${round}`, async () => {
    compressed += await change(100, `round ${round}`);
  });
  waits.push(waited);
  commits.push(settled);
  disk += packs() - before;
}
await turn('restored', () => change(500, 'restored'));
const restore = { threadId: 'thread', workspacePath: root, turnIds: ['restored'], force: false, conversation: [] };
let restored = 0;
const restoreMs = await timed(async () => {
  const outcome = await checkpoints.restore(restore);
  restored = outcome.kind === 'restored' ? outcome.restoredTotal : 0;
});
delay.disable();
await checkpoints.close();
await changes.terminate();
console.log(
  JSON.stringify({
    firstCpuMs: (first.user + first.system) / 1_000,
    scanMs: Math.min(...scans),
    commitMs: Math.min(...commits),
    diskRatio: disk / compressed,
    restored,
    restoreMs,
    waitedMs: Math.max(...waits),
    longestBlockMs: delay.max / 1e6,
    idleBlockMs,
    p99BlockMs: delay.percentile(99) / 1e6,
  }),
);
