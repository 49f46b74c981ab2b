import { once } from 'node:events';
import {
  type Context,
  firstLine,
  loadSse,
  median,
  native,
  rssKiB,
  type SseFigures,
  sseArguments,
  start,
  type Table,
  wait,
} from './harness.ts';
import { betterSse, fastify, limit, names, nchan, oratorio, type SseServer } from './servers.ts';

/** Opens `count` idle readers and returns a function that closes them. */
async function openIdle(server: SseServer, count: number): Promise<() => Promise<void>> {
  const holder = start({
    command: native().sseLoad,
    args: [...sseArguments(server.target, count).map(String), '--hold'],
    core: 1,
  });
  await firstLine(holder.child, 40_000);
  return async () => {
    const gone = once(holder.child, 'exit');
    holder.child.stdin?.end();
    await gone;
  };
}

/** Memory that `count` more idle subscribers cost a server that has `count` already: nothing is reused, nothing is warming up. */
async function idleCost(
  server: SseServer,
  count: number,
  settleMs: number,
): Promise<{ base: number; perReader: number }> {
  const [pid = 0] = server.target.pids;
  const base = rssKiB(pid);
  const closeFirst = await openIdle(server, count);
  await wait(settleMs);
  const before = rssKiB(pid);
  const closeSecond = await openIdle(server, count);
  await wait(settleMs);
  const perReader = (rssKiB(pid) - before) / count;
  await closeSecond();
  await closeFirst();
  return { base, perReader };
}

/** Memory of idle subscribers on every server; `ours` in KiB each. */
export async function memory(count: number, settleMs: number): Promise<{ table: Table; ours: number }> {
  const rows: (string | number)[][] = [];
  let own = Number.NaN;
  for (const make of [limit, () => oratorio('uws'), () => oratorio('node'), () => fastify(), betterSse, nchan]) {
    const server = await make();
    if (server === undefined) continue;
    // Code compiled, heap sized.
    await loadSse(server.target, {
      connections: Math.min(count, 500),
      phases: [{ mode: 'each', warmMs: 100, measureMs: 300 }],
    });
    const { base, perReader } = await idleCost(server, count, settleMs);
    if (server.name === names.ours) own = perReader;
    rows.push([server.name, base / 1024, perReader]);
    await server.stop();
  }
  return {
    table: {
      title: `Resident memory, ${count} idle subscribers after ${count} others`,
      columns: ['server', 'base MiB', 'KiB per subscriber'],
      rows,
    },
    ours: own,
  };
}

/** 100 readers that read, with and without one more that never does. */
export async function stalled({
  rounds,
  quick,
}: Context): Promise<{ table: Table; change: number; memoryMiB: number }> {
  const server = await oratorio('uws');
  // Long enough to fill the kernel's buffers of the stalled reader, its queue in the server, and to be cut.
  const phases = [{ mode: 'batch', warmMs: quick ? 400 : 1000, measureMs: quick ? 400 : 1000 } as const];
  const run = async (count: number): Promise<SseFigures> => {
    const [figures] = await loadSse(server.target, { connections: 100, phases, stalled: count });
    if (figures === undefined) throw new Error('the load client ran no phase');
    return figures;
  };
  // The first runs size the heap.
  await run(1);
  await run(0);
  const without: SseFigures[] = [];
  const beside: SseFigures[] = [];
  // Twice the rounds: the wanted figure is smaller than the difference of two runs on a machine with other work.
  for (let round = 0; round < rounds * 2; round += 1) {
    if (round % 2 === 0) without.push(await run(0));
    beside.push(await run(1));
    if (round % 2 === 1) without.push(await run(0));
  }
  await server.stop();
  const change = (key: 'rate' | 'cpuNsPerEvent') =>
    (median(beside.map((figures, round) => figures[key] / (without[round]?.[key] ?? Number.NaN))) - 1) * 100;
  const row = (what: string, key: 'rate' | 'cpuNsPerEvent') => {
    const of = (runs: readonly SseFigures[]) => median(runs.map((figures) => figures[key]));
    return [what, of(without), of(beside), `${change(key).toFixed(1)} %`];
  };
  const memoryMiB =
    median(beside.map((figures, round) => figures.peakRssKiB - (without[round]?.peakRssKiB ?? Number.NaN))) / 1024;
  return {
    change: change('rate'),
    memoryMiB,
    table: {
      title: 'One subscriber that never reads beside 100 that do (batched, Oratorio)',
      columns: ['', 'without', 'with', 'change'],
      rows: [
        row('events delivered per second', 'rate'),
        row('CPU ns/event', 'cpuNsPerEvent'),
        ['peak resident memory, MiB', '', '', `${memoryMiB >= 0 ? '+' : ''}${memoryMiB.toFixed(2)}`],
      ],
    },
  };
}
