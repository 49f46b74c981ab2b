/**
 * The part of the bench `places` that runs beside a Docker engine of its own, in the namespaces of the bench. Prints its figures as
 * one line of JSON.
 */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import * as v from 'valibot';
import { must } from '../test/deploy/must.ts';
import { startEngine } from '../test/stack/engine.ts';
import { images, variable } from '../test/stack/variables.ts';
import { cpuMs, loadHttp, median, pssKiB, rssKiB, timed, until, wait } from './harness.ts';
import { ensureRunning, type Hub, makePlace, type Place, type Running, startHub } from './hub.ts';
import type { Kind, KindRound, PlaceCrowd, PlaceFigures } from './places.ts';

const { quick, rounds } = v.parse(
  v.object({ quick: v.boolean(), rounds: v.number() }),
  JSON.parse(process.argv[2] ?? ''),
);
const kinds = ['local', 'container'] as const;
const startsPerRound = quick ? 2 : 3;
const measureMs = quick ? 500 : 2_000;
/** A turn of the demo model takes its time, as a model does. */
const chatMs = quick ? 2_000 : 4_000;
const crowdSize = quick ? 3 : 10;
const idleMs = quick ? 5_000 : 10_000;

const engineSocket = (): string => (process.env['DOCKER_HOST'] ?? '').replace('unix://', '');

function configure({ home }: Place): void {
  const Container = { Engine: engineSocket(), Image: images.base, Network: 'none', AllowRoot: true };
  mkdirSync(home, { recursive: true, mode: 0o700 });
  const config = { Provider: 'demo', Api: { Enabled: true }, Place: { Container } };
  writeFileSync(join(home, 'config.json'), JSON.stringify(config), { mode: 0o600 });
}

async function withPlace<T>(work: (place: Place) => Promise<T>): Promise<T> {
  const place = makePlace();
  try {
    configure(place);
    return await work(place);
  } finally {
    place.remove();
  }
}

const start = (hub: Hub, path: string, kind: Kind): Promise<Running> => ensureRunning(hub, path, { place: { kind } });

async function stop(hub: Hub, workspacePath: string): Promise<void> {
  const { status, text } = await hub.request('POST', '/v1/appservers/stop', { workspacePath });
  if (status !== 200) throw new Error(`stop: ${status} ${text}`);
}

const parentOf = (pid: number): number =>
  Number(/^PPid:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]);

const childrenOf = (pid: number): number[] =>
  readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean).map(Number);

/** Memory of the agent server, and of the processes that exist only because it is in a container: shim and init. */
function memoryOf(kind: Kind, pid: number): Pick<PlaceCrowd, 'serverMiB' | 'besideMiB'> {
  if (kind === 'local') return { serverMiB: pssKiB(pid) / 1_024, besideMiB: 0 };
  const [server] = childrenOf(pid);
  if (server === undefined) throw new Error('the container has no agent server');
  return { serverMiB: pssKiB(server) / 1_024, besideMiB: (pssKiB(pid) + pssKiB(parentOf(pid))) / 1_024 };
}

const portOf = ({ endpoints }: Running, name: string): number => Number(new URL(endpoints[name] ?? '').port);

/** Requests to the running workspace: signs of life, and chats with the demo model. */
async function requests(record: Running) {
  const { pid } = record;
  const health = { port: portOf(record, 'appServerWebSocket'), method: 'GET', path: '/healthz', headers: [] };
  const chat = {
    ...{ port: portOf(record, 'api'), method: 'POST', path: '/v1/chat/completions' },
    headers: ['content-type: application/json'],
    body: JSON.stringify({ model: 'demo', messages: [{ role: 'user', content: 'say hello' }] }),
  };
  const alive = await loadHttp({ pid, ...health, connections: 1, warmMs: measureMs / 4, measureMs });
  const [one, many] = [
    await loadHttp({ pid, ...chat, connections: 1, warmMs: chatMs / 4, measureMs: chatMs }),
    await loadHttp({ pid, ...chat, connections: 16, warmMs: chatMs / 4, measureMs: chatMs }),
  ];
  return { healthMs: alive.p50Ms, chatMs: one.p50Ms, chatsPerSecond: many.rate };
}

const Record = v.object({ state: v.string(), adopted: v.boolean() });

/** From the start of a Hub after a `kill -9` to the adoption of the agent server. */
async function adoption(place: Place, hub: Hub, path: string): Promise<{ adoptMs: number; next: Hub }> {
  await hub.kill();
  const next = await startHub(place);
  const waitedMs = await timed(() =>
    until('the agent server is adopted', 60_000, 2, async () => {
      const { text } = await next.request('GET', `/v1/appservers/by-workspace?path=${encodeURIComponent(path)}`);
      const found = v.parse(Record, JSON.parse(text));
      return (found.state === 'running' && found.adopted) || undefined;
    }),
  );
  return { adoptMs: next.startMs + waitedMs, next };
}

/** One round of a kind with a Hub of its own. */
const round = (kind: Kind): Promise<KindRound> =>
  withPlace(async (place) => {
    const path = place.workspace('bench');
    const first = await startHub(place);
    await start(first, path, kind);
    await stop(first, path);
    const [startMs, stopMs]: number[][] = [[], []];
    for (let count = 0; count < startsPerRound; count += 1) {
      startMs?.push(await timed(() => start(first, path, kind)));
      stopMs?.push(await timed(() => stop(first, path)));
    }
    const record = await start(first, path, kind);
    const asked = await requests(record);
    const { adoptMs, next } = await adoption(place, first, path);
    await next.stop();
    return { startMs: startMs ?? [], stopMs: stopMs ?? [], adoptMs, ...asked };
  });

/** Memory and processor time of a Hub with workspaces of one kind that have nothing to do. */
const crowd = (kind: Kind): Promise<PlaceCrowd> =>
  withPlace(async (place) => {
    const hub = await startHub(place);
    const pids: number[] = [];
    for (let index = 0; index < crowdSize; index += 1)
      pids.push((await start(hub, place.workspace(`idle-${index}`), kind)).pid);
    await wait(5_000);
    const before = cpuMs(hub.pid);
    await wait(idleMs);
    const cpuPercent = ((cpuMs(hub.pid) - before) / idleMs) * 100;
    const hubMiB = rssKiB(hub.pid) / 1_024;
    const memory = pids.map((pid) => memoryOf(kind, pid));
    await hub.stop();
    const serverMiB = median(memory.map((each) => each.serverMiB));
    const besideMiB = median(memory.map((each) => each.besideMiB));
    return { workspaces: crowdSize, hubMiB, cpuPercent, serverMiB, besideMiB };
  });

await must('ip', ['link', 'set', 'lo', 'up'], { timeoutMs: 10_000 });
const engine = await startEngine(variable('directory'), variable('cgroup'));
try {
  Object.assign(process.env, engine.environment);
  await must('docker', ['import', variable('base'), images.base], { timeoutMs: 300_000 });
  const found: Record<Kind, KindRound[]> = { local: [], container: [] };
  for (let count = 0; count < rounds; count += 1) for (const kind of kinds) found[kind].push(await round(kind));
  const figures: PlaceFigures = {
    rounds: found,
    crowds: { local: await crowd('local'), container: await crowd('container') },
    engine: `Docker ${engine.version}, ${engine.storage}`,
  };
  const left = await must('docker', ['ps', '--all', '--quiet'], { timeoutMs: 60_000 });
  if (left !== '') throw new Error(`containers are left: ${left}`);
  console.log(JSON.stringify(figures));
} finally {
  await engine.stop();
}
process.exit();
