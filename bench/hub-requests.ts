import {
  type Benchmark,
  type Context,
  interleaved,
  loadHttp,
  median,
  type Result,
  startPeer,
  type Table,
} from './harness.ts';
import { ensure, type Hub, makePlace, type Place, startHub } from './hub.ts';
import { nodePeer } from './servers.ts';

/** A server of the comparison, and how it is asked. */
interface Server {
  readonly name: string;
  readonly port: number;
  readonly pid: number;
  readonly token: string;
  /** Body of the request: a Hub is asked for its own workspace. */
  readonly body: string;
}

/** One route of the Hub. */
interface Route {
  readonly title: string;
  readonly method: 'GET' | 'POST';
  readonly path: string;
}

const status: Route = { title: 'GET /v1/status', method: 'GET', path: '/v1/status' };
const warmEnsure: Route = { title: 'Warm POST /v1/appservers/ensure', method: 'POST', path: '/v1/appservers/ensure' };
const connections = 64;

/** A Hub with one running workspace. */
interface Subject {
  readonly name: string;
  readonly place: Place;
  readonly hub: Hub;
  readonly workspacePath: string;
}

async function startSubject(name: string, adapter: 'uws' | 'node'): Promise<Subject> {
  const place = makePlace();
  const hub = await startHub(place, { adapter, core: 0 });
  const workspacePath = place.workspace('example');
  await ensure(hub, workspacePath);
  return { name, place, hub, workspacePath };
}

/** The peers do nothing but give the very body that the Hub gives. */
async function startPeers(answer: string, like: Server): Promise<Server[]> {
  const make = async (name: string, file: string): Promise<Server> => {
    const { port, pid } = await startPeer({ ...nodePeer(file), env: { BENCH_BODY: answer } });
    return { ...like, name, port, pid };
  };
  return [
    await make('bare uWebSockets.js', 'bare-uws.ts'),
    await make('bare node:http', 'node-http.ts'),
    await make('Fastify', 'fastify-requests.mjs'),
  ];
}

async function compare(
  route: Route,
  subjects: readonly Subject[],
  context: Context,
): Promise<{ table: Table; ratio: number }> {
  const hubs = subjects.map(({ name, hub, workspacePath }): Server => {
    const body = route.method === 'GET' ? '' : JSON.stringify({ workspacePath });
    return { name, port: hub.port, pid: hub.pid, token: hub.token, body };
  });
  const [ours] = hubs;
  const [subject] = subjects;
  if (ours === undefined || subject === undefined) throw new Error('there is no Hub to measure');
  const body = ours.body === '' ? undefined : JSON.parse(ours.body);
  const answer = await subject.hub.request(route.method, route.path, body);
  const peers = await startPeers(answer.text, ours);
  const servers = [...hubs, ...peers];

  const runs = await interleaved(servers, context.rounds, ({ port, pid, token, body }) =>
    loadHttp({
      ...{ port, pid, connections, method: route.method, path: route.path },
      ...(body === '' ? {} : { body }),
      headers: [`Authorization: Bearer ${token}`, 'Content-Type: application/json'],
      warmMs: 300,
      measureMs: context.quick ? 400 : 800,
    }),
  );
  const of = (server: Server | undefined) => (server && runs.get(server)) ?? [];
  const toBare = (server: Server) =>
    median(of(server).map(({ rate }, round) => rate / (of(peers[0])[round]?.rate ?? Number.NaN)));
  const columns = ['rate', 'cpuUs', 'p50Ms', 'p99Ms', 'answerBytes', 'clientLoad'] as const;
  return {
    ratio: toBare(ours),
    table: {
      title: `${route.title}, ${connections} connections`,
      columns: ['server', 'requests/s', 'CPU µs', 'p50 ms', 'p99 ms', 'answer bytes', 'client load', '× bare uWS'],
      rows: servers.map((server) => [
        server.name,
        ...columns.map((key) => median(of(server).map((run) => run[key]))),
        toBare(server),
      ]),
    },
  };
}

async function run(context: Context): Promise<Result> {
  const subjects: Subject[] = [];
  try {
    subjects.push(await startSubject('Oratorio Hub', 'uws'), await startSubject('Oratorio Hub on node:http', 'node'));
    const onStatus = await compare(status, subjects, context);
    const onEnsure = await compare(warmEnsure, subjects, context);
    return {
      tables: [onStatus.table, onEnsure.table],
      checks: [
        { what: 'GET /v1/status × a bare uWebSockets.js handler', measured: onStatus.ratio, atLeast: 0.9 },
        { what: 'warm ensure × a bare uWebSockets.js handler', measured: onEnsure.ratio, atLeast: 0.6 },
      ],
    };
  } finally {
    for (const { hub, place } of subjects) {
      await hub.stop();
      place.remove();
    }
  }
}

export const hubRequests: Benchmark = { name: 'hub-requests', title: 'Requests to the Hub', run };
