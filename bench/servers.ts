import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { type AddressInfo, connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { native, onExit, type SseTarget, type StartOptions, start, startPeer, until } from './harness.ts';

/** A server of the SSE comparisons. */
export interface SseServer {
  readonly name: string;
  readonly target: SseTarget;
  stop(): Promise<void>;
}

export const names = {
  ours: 'Oratorio',
  limit: 'C epoll (limit)',
  node: 'Oratorio on node:http',
  nchan: 'nginx + nchan',
} as const;

const peer = (file: string) => join(import.meta.dirname, 'peers', file);

/** Command line of a Node peer of bench/peers. */
export function nodePeer(file: string, ...args: string[]): StartOptions {
  return { command: process.execPath, args: ['--disable-warning=ExperimentalWarning', peer(file), ...args], core: 0 };
}

async function ssePeer(name: string, options: StartOptions): Promise<SseServer> {
  const { port, control, pid, stop } = await startPeer(options);
  return { name, target: { name, port, control, pids: [pid] }, stop };
}

export const limit = (): Promise<SseServer> =>
  ssePeer(names.limit, { command: native().broadcaster, args: [], core: 0 });
export const oratorio = (adapter: 'uws' | 'node', source = 'plain', name?: string): Promise<SseServer> =>
  ssePeer(name ?? (adapter === 'uws' ? names.ours : names.node), nodePeer('oratorio.ts', adapter, source));
export const fastify = (source = 'plain', name = 'Fastify'): Promise<SseServer> =>
  ssePeer(name, nodePeer('fastify-sse.mjs', source));
export const betterSse = (): Promise<SseServer> => ssePeer('better-sse', nodePeer('better-sse.mjs'));

const nchanModule = ['/usr/lib/nginx/modules/ngx_nchan_module.so', '/usr/share/nginx/modules/ngx_nchan_module.so'].find(
  existsSync,
);
const nginx = ['/usr/sbin/nginx', '/usr/local/sbin/nginx', '/usr/bin/nginx'].find(existsSync);

export const hasNchan = nginx !== undefined && nchanModule !== undefined && spawnSync(nginx, ['-v']).status === 0;

/** A free port of the loopback interface. */
export async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

function nchanConfiguration(directory: string, port: number): string {
  const paths = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    (name) => `${name}_temp_path ${directory}/${name};`,
  );
  return `
load_module ${nchanModule};
daemon off;
worker_processes 1;
worker_rlimit_nofile 20000;
pid ${directory}/nginx.pid;
error_log ${directory}/error.log;
${process.getuid?.() === 0 ? 'user root;' : ''}
events { worker_connections 19000; use epoll; }
http {
  ${paths.join('\n  ')}
  access_log off;
  keepalive_requests 100000000;
  tcp_nodelay on;
  nchan_max_reserved_memory 256m;
  server {
    listen 127.0.0.1:${port};
    location = /v1/events { nchan_subscriber eventsource; nchan_channel_id bench; nchan_subscriber_first_message newest; }
    location = /pub { nchan_publisher; nchan_channel_id bench; nchan_message_buffer_length 16384; nchan_message_timeout 1m; }
  }
}
`;
}

const answers = (port: number): Promise<true | undefined> =>
  new Promise((resolve) => {
    const socket = connect({ host: '127.0.0.1', port });
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', () => resolve(undefined));
  });

/** Children of a process; undefined while it has none. */
function childrenOf(pid: number): number[] | undefined {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(/\s+/).filter(Boolean).map(Number);
  return children.length > 0 ? children : undefined;
}

/** nginx with nchan, one worker, no files outside a directory of its own. Undefined where it is not installed. */
export async function nchan(): Promise<SseServer | undefined> {
  if (nginx === undefined || !hasNchan) return undefined;
  const directory = mkdtempSync(join(tmpdir(), 'oratorio-bench-nginx-'));
  const remove = (): void => rmSync(directory, { recursive: true, force: true });
  onExit(remove);
  const port = await freePort();
  const configuration = join(directory, 'nginx.conf');
  writeFileSync(configuration, nchanConfiguration(directory, port));
  const { pid, stop } = start({
    command: nginx,
    args: ['-p', directory, '-c', configuration, '-e', join(directory, 'error.log')],
    core: 0,
  });
  await until('nginx', 10_000, 20, () => answers(port));
  // The master listens before it has forked: without its worker there would be no CPU time to read.
  const workers = await until('a worker of nginx', 10_000, 20, async () => childrenOf(pid));
  return {
    name: names.nchan,
    target: { name: names.nchan, port, control: undefined, publish: '/pub', mayLose: true, pids: workers },
    async stop() {
      await stop();
      remove();
    },
  };
}

/** Every server of the comparison that can run here, the limit first. */
export async function allSseServers(): Promise<SseServer[]> {
  const all = [
    await limit(),
    await oratorio('uws'),
    await oratorio('node'),
    await fastify(),
    await betterSse(),
    await nchan(),
  ];
  return all.filter((server) => server !== undefined);
}
