/**
 * A small stand-in for the Hub: it serves the page with the same headers and speaks the same contract, over real actors
 * of the real machines whose processes are imagined. Tests move them by sending events.
 */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { type ActorRefFrom, createActor, fromCallback, fromPromise } from 'xstate';
import {
  agentServerMachine,
  apiProxyMachine,
  catalogue,
  hubMachine,
  type Ownership,
  type Preparation,
  type PrepareInput,
  type ProcessCommand,
  type ProcessInput,
  type Readiness,
  type SidecarActorInput,
  type SleepAnswer,
  sidecarSlotMachine,
} from '../../machines/index.ts';
import { createInspectionSource, createRecorder, loadCharts, projections } from '../../src/inspect/index.ts';
import type { FleetList, PageInfo } from '../../src/protocol/index.ts';
import { answerProof } from '../prove.ts';
import { pagePort, sendPageFile } from './page-server.ts';

export const token = 'test-token-0123456789';
const heartbeatMs = 5_000;

const policy = {
  restart: 'onFailure' as const,
  maxRestarts: 5,
  withinMs: 120_000,
  // Long enough that no deadline passes during a test on a slow machine.
  backoffBaseMs: 3_600_000,
  backoffCapMs: 3_600_000,
  stableAfterMs: 30_000,
  handOverMs: 0,
  gracefulStopMs: 3_600_000,
  killVerifyMs: 3_600_000,
  proxyDeadlineMs: 3_600_000,
  startDeadlineMs: 3_600_000,
  livenessFailures: 3,
  unhealthyGraceMs: 600_000,
  idleStopMs: 0,
};

/** List of a Hub without workspaces. */
const emptyFleet: FleetList = { appServers: [], hosts: [], sums: [], next: null };
const pageInfo: PageInfo = { kind: 'hub', version: '0.0.0', views: ['overview', 'actors', 'events'] };

const never = () => new Promise<never>(() => {});
const processLogic = fromCallback<ProcessCommand, ProcessInput>(() => {});

export const workspaceMachine = agentServerMachine.provide({
  actors: {
    prepare: fromPromise<Preparation, PrepareInput>(async () => ({
      ownership: 'managed',
      ports: [],
    })),
    process: processLogic,
    readiness: fromPromise<
      Readiness,
      { readonly workspacePath: string; readonly incarnation: number; readonly ownership: Ownership }
    >(never),
    askToSleep: fromPromise<
      SleepAnswer,
      { readonly workspacePath: string; readonly incarnation: number; readonly idleStopMs: number }
    >(never),
    liveness: fromCallback<
      { readonly type: string },
      { readonly workspacePath: string; readonly incarnation: number; readonly idleStopMs: number }
    >(() => {}),
    sidecarSlot: sidecarSlotMachine.provide({
      actors: {
        apiProxy: apiProxyMachine.provide({
          actors: {
            process: processLogic,
            readiness: fromPromise<{ readonly at: number }, SidecarActorInput>(never),
          },
        }),
      },
    }),
  },
});

export type Workspace = ActorRefFrom<typeof agentServerMachine>;

export function createWorkspace(path: string): Workspace {
  return createActor(workspaceMachine, { input: { workspacePath: path, policy, seed: 1 } });
}

export async function startBackend(pageDirectory: string) {
  const recorder = createRecorder({ machines: catalogue, projections });
  let source = createInspectionSource(recorder);
  const charts = JSON.stringify(await loadCharts());
  const workspaces = new Map<string, Workspace>();
  const started: Workspace[] = [];
  const requests: string[] = [];
  const streams = new Set<ServerResponse>();
  const quiet = new Set<ServerResponse>();
  let refusesStreams = false;

  const hub = createActor(
    hubMachine.provide({
      actors: {
        boot: fromPromise(async () => {}),
        claim: fromPromise<{ readonly won: boolean }>(async () => ({ won: true })),
        listen: fromPromise(async () => ({ apiBaseUrl: 'http://127.0.0.1' })),
        recover: fromPromise(async () => ({ adopted: 0 })),
      },
    }),
    { input: { drainDeadlineMs: 1000 } },
  );
  recorder.observe(hub, { id: 'hub', parent: null, machine: 'hub', title: 'Hub' });
  hub.start();

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (answerProof(request, response, 'hub', [token])) return;
    const url = new URL(request.url ?? '/', 'http://localhost');
    requests.push(`${request.method} ${url.pathname}`);
    const json = (status: number, body: string) => {
      response.writeHead(status, { 'content-type': 'application/json', 'cache-control': 'no-store' }).end(body);
    };
    if (!url.pathname.startsWith('/v1/')) {
      return sendPageFile(response, pageDirectory, url.pathname === '/' ? 'index.html' : url.pathname);
    }
    if (request.headers.authorization !== `Bearer ${token}`) {
      return json(401, '{"error":{"code":"unauthorized","message":"Missing or wrong token.","details":null}}');
    }
    if (url.pathname === '/v1/machines') return json(200, charts);
    if (url.pathname === '/v1/inspect') return serveStream(request, response);
    if (url.pathname === '/v1/page') return json(200, JSON.stringify(pageInfo));
    if (url.pathname === '/v1/fleet/appservers') return json(200, JSON.stringify(emptyFleet));
    if (url.pathname === '/v1/fleet/events') return serveNothing(response);
    const [, action] = /^\/v1\/appservers\/(ensure|restart|stop)$/.exec(url.pathname) ?? [];
    if (!action || request.method !== 'POST')
      return json(404, '{"error":{"code":"notFound","message":"No such route.","details":null}}');
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const { workspacePath } = JSON.parse(Buffer.concat(chunks).toString()) as { workspacePath: string };
    const workspace = workspaces.get(workspacePath);
    if (!workspace) {
      return json(404, '{"error":{"code":"workspaceNotFound","message":"No such workspace.","details":null}}');
    }
    if (action === 'stop') workspace.send({ type: 'STOP', reason: 'user' });
    else workspace.send({ type: action === 'ensure' ? 'ENSURE' : 'RESTART' });
    json(200, '{}');
  }

  function serveStream(request: IncomingMessage, response: ServerResponse): void {
    if (refusesStreams) {
      response.destroy();
      return;
    }
    response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-store' });
    response.write(': connected\n\n');
    const lastEventId = request.headers['last-event-id'];
    for (const frames of source.replay(typeof lastEventId === 'string' ? lastEventId : undefined))
      response.write(frames);
    const unsubscribe = source.subscribe(
      (batch) => response.write(batch),
      () => response.end(),
    );
    streams.add(response);
    // Like a server: a client takes a stream that is silent for long for dead, and connects again.
    const heartbeat = setInterval(() => response.writableEnded || response.write(':\n\n'), heartbeatMs);
    response.on('close', () => {
      clearInterval(heartbeat);
      streams.delete(response);
      unsubscribe();
    });
  }

  /** The Hub's lifecycle stream, on which nothing happens. */
  function serveNothing(response: ServerResponse): void {
    if (refusesStreams) {
      response.destroy();
      return;
    }
    response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-store' });
    response.write(': connected\n\n');
    quiet.add(response);
    const heartbeat = setInterval(() => response.write(':\n\n'), heartbeatMs);
    response.on('close', () => {
      clearInterval(heartbeat);
      quiet.delete(response);
    });
  }

  const server = createServer((request, response) => {
    answer(request, response).catch(() => response.destroy());
  });
  const port = await pagePort();
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');

  return {
    url: `http://127.0.0.1:${port}/`,
    recorder,
    hub,
    requests,
    workspaces,
    get viewers() {
      return streams.size;
    },
    add(path: string): Workspace {
      const workspace = createWorkspace(path);
      recorder.observe(workspace, { id: path, parent: 'hub', machine: 'agent-server', title: path });
      workspaces.set(path, workspace);
      started.push(workspace);
      workspace.start();
      return workspace;
    },
    /** Cuts every stream; `forget` also makes ids of before unknown, as after a restart of the Hub. */
    cut(options: { forget?: boolean; refuse?: boolean } = {}): void {
      refusesStreams = options.refuse ?? false;
      if (options.forget) source = createInspectionSource(recorder);
      for (const stream of [...streams, ...quiet]) stream.destroy();
    },
    async close(): Promise<void> {
      recorder.close();
      for (const workspace of started) workspace.stop();
      hub.stop();
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

/** Brings a workspace up to `running`. */
export async function bringUp(workspace: Workspace, options: { sidecar?: number } = {}): Promise<void> {
  workspace.send({ type: 'ENSURE', ...options });
  const until = (state: string) => waitForState(workspace, state);
  if (options.sidecar) {
    await until('starting.proxying');
    const slot = workspace.getSnapshot().children['sidecarSlot'];
    slot?.getSnapshot().children['apiProxy']?.send({ type: 'PROCESS.SPAWNED', incarnation: 1, pid: 4243 });
    slot?.send({ type: 'PROXY.RUNNING', pid: 4243 });
  }
  await until('starting.spawning');
  const { incarnation } = workspace.getSnapshot().context;
  workspace.send({ type: 'PROCESS.SPAWNED', incarnation, pid: 4242 });
  workspace.send({
    type: 'xstate.done.actor.readiness',
    output: { serverVersion: '0.1.0', at: 0, ports: [] },
  } as unknown as Parameters<Workspace['send']>[0]);
  await until('running');
}

function waitForState(workspace: Workspace, path: string): Promise<void> {
  const isThere = () => {
    const [outer = '', inner] = path.split('.');
    const { value } = workspace.getSnapshot();
    return inner === undefined ? value === outer : JSON.stringify(value) === JSON.stringify({ [outer]: inner });
  };
  return new Promise((resolve) => {
    if (isThere()) return resolve();
    const subscription = workspace.subscribe(() => {
      if (!isThere()) return;
      subscription.unsubscribe();
      resolve();
    });
  });
}
