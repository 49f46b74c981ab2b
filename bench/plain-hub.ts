/** A Hub that uses neither hosts nor containers: this build, and another one beside it. */
import { type Context, cpuMs, loadHttp, median, rssKiB, wait } from './harness.ts';
import { ensure, type Hub, makePlace, startHub } from './hub.ts';

export interface PlainHub {
  readonly build: string;
  readonly startMs: number;
  readonly residentMiB: number;
  readonly statusMs: number;
  readonly listMs: number;
  readonly idlePercent: number;
}

type Round = Omit<PlainHub, 'build'>;

const settleMs = 1_500;

async function p50Of({ port, pid, token }: Hub, path: string, measureMs: number): Promise<number> {
  const headers = [`authorization: Bearer ${token}`];
  const load = { port, pid, method: 'GET', path, headers, connections: 1, warmMs: measureMs / 4, measureMs };
  return (await loadHttp(load)).p50Ms;
}

async function round(root: string | undefined, quick: boolean): Promise<Round> {
  const place = makePlace();
  try {
    const hub = await startHub(place, { root });
    await ensure(hub, place.workspace('one'));
    await wait(settleMs);
    const idleMs = quick ? 2_000 : 5_000;
    const before = cpuMs(hub.pid);
    await wait(idleMs);
    const idlePercent = ((cpuMs(hub.pid) - before) / idleMs) * 100;
    const residentMiB = rssKiB(hub.pid) / 1_024;
    const measureMs = quick ? 500 : 1_000;
    const statusMs = await p50Of(hub, '/v1/status', measureMs);
    const listMs = await p50Of(hub, '/v1/appservers', measureMs);
    await hub.stop();
    return { startMs: hub.startMs, residentMiB, statusMs, listMs, idlePercent };
  } finally {
    place.remove();
  }
}

/** This build first, then the build in `against`; in turn within each round. */
export async function plainHubs({ quick, rounds, against }: Context): Promise<PlainHub[]> {
  const builds = [
    { build: 'this build', root: undefined, found: [] as Round[] },
    ...(against === undefined ? [] : [{ build: 'the other build', root: against, found: [] as Round[] }]),
  ];
  for (let each = 0; each < rounds; each += 1)
    for (const { root, found } of each % 2 === 0 ? builds : builds.toReversed()) found.push(await round(root, quick));
  return builds.map(({ build, found }) => {
    const over = (key: keyof Round): number => median(found.map((each) => each[key]));
    return {
      ...{ build, startMs: over('startMs'), residentMiB: over('residentMiB'), statusMs: over('statusMs') },
      ...{ listMs: over('listMs'), idlePercent: over('idlePercent') },
    };
  });
}
