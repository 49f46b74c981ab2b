/** The servers that the chat benchmark compares, each in front of the same mock upstream. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import * as v from 'valibot';
import { type Peer, type Started, start, startPeer, until } from './harness.ts';
import { makePlace } from './hub.ts';
import { freePort, nodePeer } from './servers.ts';

export interface ChatServer {
  readonly name: string;
  readonly port: number;
  readonly pid: number;
  readonly headers: readonly string[];
  /** From spawning it to its first answer. */
  readonly readyMs: number;
  readonly streams: boolean;
  stop(): Promise<void>;
}

export const names = {
  direct: 'no relay',
  ours: 'Oratorio',
  limit: 'bare uWS relay (limit)',
  node: 'bare node:http relay',
  sdk: 'node:http + openai client',
  portkey: 'Portkey gateway',
} as const;

const noHeaders: readonly string[] = [];

async function answers(port: number, path: string): Promise<true | undefined> {
  try {
    const response = await fetch(`http://127.0.0.1:${port}${path}`);
    await response.arrayBuffer();
    return response.ok || undefined;
  } catch {
    return undefined;
  }
}

/** How long a process takes from here until it answers GET `path`. */
async function ready(process: Started, port: number, path: string): Promise<number> {
  const from = performance.now();
  await until(`${process.child.spawnargs.join(' ')} on port ${port}`, 30_000, 5, () => answers(port, path));
  return performance.now() - from;
}

async function relay(name: string, file: string, upstream: string): Promise<ChatServer> {
  const from = performance.now();
  const peer = await startPeer({ ...nodePeer(file), env: { BENCH_UPSTREAM: upstream } });
  const { port, pid } = peer;
  return {
    name,
    port,
    pid,
    headers: noHeaders,
    readyMs: performance.now() - from,
    streams: true,
    stop: () => peer.stop(),
  };
}

/** Without a key the server would look up whose process asks, which `node:http` alone can do. */
const apiKey = 'bench-api-key';

/** `oratorio api` in a workspace of its own, with the settings of its user. */
export async function oratorioApi(upstream: string): Promise<ChatServer> {
  const place = makePlace();
  const workspacePath = place.workspace('chat');
  const port = await freePort();
  const config = {
    EndPoint: `${upstream}/v1`,
    ApiKey: 'bench',
    Model: 'instant',
    Api: { Port: port, ApiKey: apiKey, MaxConcurrentTurns: 2_000 },
  };
  mkdirSync(place.home, { recursive: true, mode: 0o700 });
  writeFileSync(join(place.home, 'config.json'), JSON.stringify(config), { mode: 0o600 });
  const started = start({
    command: process.execPath,
    args: [join(import.meta.dirname, '..', 'bin', 'oratorio.js'), 'api', '--workspace', workspacePath],
    core: 0,
    env: { ORATORIO_HOME: place.home },
  });
  started.child.stdout?.resume();
  const readyMs = await ready(started, port, '/v1/health');
  return {
    name: names.ours,
    port,
    pid: started.pid,
    headers: [`authorization: Bearer ${apiKey}`],
    readyMs,
    streams: true,
    async stop() {
      await started.stop();
      place.remove();
    },
  };
}

const PortkeyPackage = v.object({ bin: v.union([v.string(), v.record(v.string(), v.string())]) });

/** Without its console. As it installs it answers 500 to every stream (its issue 1389), so it takes no part in those. */
async function portkey(upstream: string): Promise<ChatServer> {
  const require = createRequire(import.meta.url);
  const file = require.resolve('@portkey-ai/gateway/package.json');
  const { bin } = v.parse(PortkeyPackage, JSON.parse(readFileSync(file, 'utf8')));
  const program = typeof bin === 'string' ? bin : Object.values(bin)[0];
  const port = await freePort();
  const started = start({
    command: process.execPath,
    args: [join(dirname(file), program ?? ''), `--port=${port}`, '--headless'],
    core: 0,
    env: { NODE_ENV: 'production', TRUSTED_CUSTOM_HOSTS: '127.0.0.1' },
  });
  started.child.stdout?.resume();
  return {
    name: names.portkey,
    port,
    pid: started.pid,
    headers: ['x-portkey-provider: openai', `x-portkey-custom-host: ${upstream}/v1`, 'authorization: Bearer bench'],
    readyMs: await ready(started, port, '/'),
    streams: false,
    stop: () => started.stop(),
  };
}

/** The upstream itself, as a base for the costs of the others. */
export function directUpstream({ port, pid, stop }: Peer): ChatServer {
  return { name: names.direct, port, pid, headers: noHeaders, readyMs: 0, streams: true, stop };
}

/** All of them, the limit first. */
export async function allChatServers(upstream: string): Promise<ChatServer[]> {
  return [
    await relay(names.limit, 'relay-uws.mjs', upstream),
    await oratorioApi(upstream),
    await relay(names.node, 'relay-node.ts', upstream),
    await relay(names.sdk, 'relay-openai.ts', upstream),
    await portkey(upstream),
  ];
}
