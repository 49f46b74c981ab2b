/** Checkpoints of one tree in a process of its own. Arguments: workspace, store. Prints the figures as one line of JSON. */
import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { zstdCompressSync } from 'node:zlib';
import { defaultLimits, EngineThread } from '../../src/checkpoints/index.ts';

const [root = '', directory = '', rounds = '5'] = process.argv.slice(2);
const engines = new EngineThread();
const limits = { ...defaultLimits, freeBytes: 0 };
const place = { treeId: 'tree', root, directory, limits, ownDirectories: [], gitEnvironment: undefined };
const delay = monitorEventLoopDelay({ resolution: 1 });
const packs = () => statSync(join(directory, 'packs', '000001.pack')).size;
let turns = 0;

async function mark(edge: 'start' | 'end', turn: string): Promise<number> {
  const from = performance.now();
  await engines.call(place, 'mark', [[{ edge, thread: 'thread', turn }]]);
  return performance.now() - from;
}

function change(count: number, text: string): number {
  // The changes themselves block: they are no part of the figure.
  delay.disable();
  let compressed = 0;
  for (let number = 0; number < count; number += 1) {
    const path = join(root, `d${number % 50}`, `e${number % 100}`, `f${Math.floor(number / 100)}`);
    const content = `${text} ${number}\n${readFileSync(path, 'utf8').slice(0, 2_000)}`;
    compressed += zstdCompressSync(content).length;
    writeFileSync(path, content);
  }
  delay.enable();
  return compressed;
}

const cpu = process.cpuUsage();
await mark('start', `turn_${turns}`);
const first = process.cpuUsage(cpu);
await mark('end', `turn_${turns}`);
// Young files are read again: the second scan of a tree is the first one that only compares.
await new Promise((resolve) => setTimeout(resolve, 50));
await mark('start', 'settle');
await mark('end', 'settle');
const scans: number[] = [];
const commits: number[] = [];
let disk = 0;
let compressed = 0;
for (let round = 0; round < Number(rounds); round += 1) {
  turns += 1;
  scans.push(await mark('start', `turn_${turns}`));
  const before = packs();
  compressed += change(100, `round ${round}`);
  commits.push(await mark('end', `turn_${turns}`));
  disk += packs() - before;
}
turns += 1;
await mark('start', `turn_${turns}`);
change(500, 'restored');
await mark('end', `turn_${turns}`);
const from = performance.now();
const order = { thread: 'thread', turns: [`turn_${turns}`], paths: undefined, force: false, conversation: [] };
const { number = 0 } = await engines.call(place, 'prepare', [order]);
const left = await engines.call(place, 'apply', [number]);
const outcome = await engines.call(place, 'conclude', [number, left]);
const restoreMs = performance.now() - from;
delay.disable();
await engines.release(place.treeId);
console.log(
  JSON.stringify({
    firstCpuMs: (first.user + first.system) / 1_000,
    scanMs: Math.min(...scans),
    commitMs: Math.min(...commits),
    diskRatio: disk / compressed,
    restored: outcome.restored.length,
    restoreMs,
    longestBlockMs: delay.max / 1e6,
    p99BlockMs: delay.percentile(99) / 1e6,
  }),
);
