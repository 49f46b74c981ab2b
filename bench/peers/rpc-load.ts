/**
 * Load client for JSON-RPC turns: `--threads` threads at once on one connection, one turn after the other in each, a new
 * thread after every ten. Every turn is checked. Prints one JSON line.
 */
import { parseArgs } from 'node:util';
import { cpuMs } from '../machine.ts';
import { RpcClient } from '../rpc-client.ts';
import { mockAnswers, textOf } from './mock-answers.ts';

const { values } = parseArgs({
  options: {
    url: { type: 'string', default: '' },
    pid: { type: 'string', default: '0' },
    threads: { type: 'string', default: '1' },
    warm: { type: 'string', default: '500' },
    measure: { type: 'string', default: '1000' },
  },
});
const turnsPerThread = 10;
const expected = textOf('instant');
const { chunks } = mockAnswers.instant;

const client = await RpcClient.open(values.url);
const measureFrom = performance.now() + Number(values.warm);
const until = measureFrom + Number(values.measure);
const wholes: number[] = [];
const firsts: number[] = [];

async function work(): Promise<void> {
  while (performance.now() < until) {
    const threadId = await client.startThread({ model: 'instant' });
    for (let count = 0; count < turnsPerThread && performance.now() < until; count += 1) {
      const from = performance.now();
      const { status, text, deltas, ms, firstDeltaMs } = await client.turn(threadId, 'What do you do?');
      if (status !== 'completed' || text !== expected || deltas !== chunks) {
        throw new Error(`a turn that is not whole: ${status}, ${deltas} deltas, ${text}`);
      }
      if (from < measureFrom) continue;
      wholes.push(ms);
      firsts.push(firstDeltaMs);
    }
  }
}

let cpuFrom = 0;
setTimeout(() => {
  cpuFrom = cpuMs(Number(values.pid));
}, Number(values.warm)).unref();
await Promise.all(Array.from({ length: Number(values.threads) }, work));
const cpu = cpuMs(Number(values.pid)) - cpuFrom;

const percentile = (sorted: readonly number[], fraction: number): number =>
  sorted[Math.round(fraction * (sorted.length - 1))] ?? 0;
for (const samples of [wholes, firsts]) samples.sort((a, b) => a - b);
const own = process.cpuUsage();
console.log(
  JSON.stringify({
    turns: wholes.length,
    seconds: (performance.now() - measureFrom) / 1000,
    cpuMs: cpu,
    clientLoad: (own.user + own.system) / 1000 / (performance.now() - measureFrom + Number(values.warm)),
    p50Ms: percentile(wholes, 0.5),
    p99Ms: percentile(wholes, 0.99),
    firstP50Ms: percentile(firsts, 0.5),
    firstP99Ms: percentile(firsts, 0.99),
  }),
);
client.close();
