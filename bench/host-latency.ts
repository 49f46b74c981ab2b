/** Latency of requests and events of another machine: at its own Hub, and through a Hub that follows it. */
import type { BuiltHub } from '../test/e2e/harness.ts';
import { loadHttp, median, until } from './harness.ts';

interface Request {
  readonly name: string;
  readonly method: string;
  readonly body?: string;
  /** Path at the remote Hub, and at the Hub that follows it. */
  readonly direct: string;
  readonly through: string;
}

/** Figures of one request; the differences and ratios are medians of those within each round. */
export type Ways = readonly {
  readonly name: string;
  readonly directMs: number;
  readonly hostMs: number;
  readonly addedMs: number;
  readonly ratio: number;
}[];

interface Load {
  readonly rounds: number;
  readonly measureMs: number;
  readonly host: string;
}

async function requestsOf(remote: BuiltHub, host: string): Promise<Request[]> {
  const [record] = (await remote.client.list()).filter(({ state }) => state === 'running');
  if (!record?.page) throw new Error('no workspace runs on the other machine');
  const body = JSON.stringify({ workspacePath: record.canonicalWorkspacePath });
  const status = `${record.page}dashboard/api/summary`;
  return [
    {
      name: 'list of workspaces',
      method: 'GET',
      direct: '/v1/appservers',
      through: `/v1/fleet/appservers?host=${host}`,
    },
    { name: 'inbox', method: 'GET', direct: '/v1/inbox', through: '/v1/fleet/inbox' },
    { name: 'data of a page', method: 'GET', direct: status, through: `/h/${host}${status}` },
    {
      ...{ name: 'start of a workspace that runs', method: 'POST', body },
      ...{ direct: '/v1/appservers/ensure', through: `/v1/hosts/${host}/ensure` },
    },
  ];
}

async function p50Of({ lock }: BuiltHub, { method, body }: Request, path: string, measureMs: number): Promise<number> {
  const { p50Ms } = await loadHttp({
    ...{ port: Number(new URL(lock.apiBaseUrl).port), pid: lock.pid, method, path, connections: 1 },
    headers: [`authorization: Bearer ${lock.token}`, 'content-type: application/json'],
    ...(body !== undefined && { body }),
    ...{ warmMs: measureMs / 4, measureMs },
  });
  return p50Ms;
}

export async function waysOf(hub: BuiltHub, remote: BuiltHub, { rounds, measureMs, host }: Load): Promise<Ways> {
  const found = [];
  for (const request of await requestsOf(remote, host)) {
    const pairs: (readonly [direct: number, through: number])[] = [];
    for (let round = 0; round < rounds; round += 1) {
      const direct = await p50Of(remote, request, request.direct, measureMs);
      pairs.push([direct, await p50Of(hub, request, request.through, measureMs)]);
    }
    found.push({ name: request.name, ...comparison(pairs) });
  }
  return found;
}

const comparison = (pairs: readonly (readonly [number, number])[]) => ({
  directMs: median(pairs.map(([direct]) => direct)),
  hostMs: median(pairs.map(([, through]) => through)),
  addedMs: median(pairs.map(([direct, through]) => through - direct)),
  ratio: median(pairs.map(([direct, through]) => through / direct)),
});

export type EventFigures = ReturnType<typeof comparison>;

/** Follows the notifications of a Hub. @returns arrival times by title, once the stream is open */
async function arrivals(hub: BuiltHub, allHosts: boolean, signal: AbortSignal): Promise<ReadonlyMap<string, number>> {
  const times = new Map<string, number>();
  const { promise: opened, resolve: onOpen, reject } = Promise.withResolvers<void>();
  const read = async () => {
    for await (const { kind, data } of hub.client.events({ allHosts, signal, onOpen }))
      if (kind === 'notification.requested')
        times.set(String((data as Record<string, unknown>)['title']), performance.now());
  };
  read().catch((error: unknown) => signal.aborted || reject(error));
  await opened;
  return times;
}

/** Sends notifications at the remote Hub one after the other, to a subscriber there and to one at the Hub that follows it. */
export async function eventLatency(hub: BuiltHub, remote: BuiltHub, count: number): Promise<EventFigures> {
  const leaving = new AbortController();
  try {
    const direct = await arrivals(remote, false, leaving.signal);
    const through = await arrivals(hub, true, leaving.signal);
    const pairs: (readonly [number, number])[] = [];
    for (let number = 0; number < count; number += 1) {
      const title = `event ${number}`;
      const from = performance.now();
      await remote.client.requestNotification({ title });
      await until(`${title} arrives`, 10_000, 1, async () => (direct.has(title) && through.has(title)) || undefined);
      pairs.push([(direct.get(title) ?? Number.NaN) - from, (through.get(title) ?? Number.NaN) - from]);
    }
    return comparison(pairs);
  } finally {
    leaving.abort();
  }
}
