import { type Benchmark, type Check, type Context, fileLimit, type Result, stopAll } from './harness.ts';
import { allSseServers, hasNchan, names } from './servers.ts';
import { eventTable } from './sse-event.ts';
import { memory, stalled } from './sse-memory.ts';
import { fanoutTables, type Runs, saturate, steady } from './sse-rates.ts';

/** Subscribers at which the targets hold. */
const deep = 1000;

function rateChecks(runs: Runs): Check[] {
  const { ours, limit, node, nchan } = names;
  const checks: Check[] = [
    { what: 'each, 1 subscriber, × the C limit', measured: runs.ratio(ours, limit, 'each', 1, 'rate'), atLeast: 0.6 },
    {
      what: 'batched, 1 subscriber, × the C limit',
      measured: runs.ratio(ours, limit, 'batch', 1, 'rate'),
      atLeast: 0.6,
    },
    {
      what: `each, ${deep} subscribers, × the C limit`,
      measured: runs.ratio(ours, limit, 'each', deep, 'rate'),
      atLeast: 0.9,
    },
    {
      what: `each, ${deep} subscribers, × node:http`,
      measured: runs.ratio(ours, node, 'each', deep, 'rate'),
      atLeast: 1.5,
    },
    {
      what: `batched, ${deep} subscribers, × the C limit`,
      measured: runs.ratio(ours, limit, 'batch', deep, 'rate'),
      atLeast: 0.8,
    },
    {
      what: `each, ${deep} subscribers, p99 ÷ node:http`,
      measured: runs.ratio(ours, node, 'each', deep, 'p99Ms'),
      atMost: 1,
    },
  ];
  if (!hasNchan) return checks;
  return [
    ...checks,
    {
      what: `each, ${deep} subscribers, × nginx + nchan`,
      measured: runs.ratio(ours, nchan, 'each', deep, 'rate'),
      atLeast: 1.3,
    },
  ];
}

async function run(context: Context): Promise<Result> {
  const most = fileLimit();
  const wanted = context.quick ? [1, 100, deep] : [1, 100, deep, 5000];
  const counts = wanted.filter((count) => count + 200 < most);
  const skipped = wanted.filter((count) => !counts.includes(count));
  const all = await allSseServers();
  const runs = await saturate(all, counts, context);
  const pace = await steady(all, context);
  await stopAll();
  // Twice as many are open at once.
  const held = await memory(!context.quick && most > 10_200 ? 5000 : 1000, context.quick ? 500 : 1500);
  const stall = await stalled(context);
  return {
    tables: [...fanoutTables(all, counts, deep, runs), eventTable(context.rounds), pace, held.table, stall.table],
    checks: [
      ...rateChecks(runs),
      { what: 'resident memory per idle subscriber', measured: held.ours, atMost: 2, unit: ' KiB' },
      { what: 'throughput lost to a stalled subscriber', measured: -stall.change, atMost: 5, unit: ' %' },
      { what: 'memory held for a stalled subscriber', measured: stall.memoryMiB, atMost: 1, unit: ' MiB' },
    ],
    notes: [
      ...runs.losses,
      ...(skipped.length > 0
        ? [`Left out, the limit of open files is ${most}: ${skipped.join(', ')} subscribers.`]
        : []),
      ...(hasNchan ? [] : ['nginx with nchan is not installed here (Debian: nginx-light libnginx-mod-nchan).']),
    ],
  };
}

export const sseFanout: Benchmark = { name: 'sse-fanout', title: 'SSE fan-out', run };
