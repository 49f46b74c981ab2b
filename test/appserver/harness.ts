/** Real agent servers, in this process and in their own, and independent WebSocket clients. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import * as v from 'valibot';
import { WebSocket as ThirdPartySocket } from 'ws';
import type { ModelProvider } from '../../src/agent/index.ts';
import { type AppServer, type AppServerOptions, startAppServer } from '../../src/appserver/index.ts';
import { workspaceStateDirectory } from '../../src/config/index.ts';
import { createLogger } from '../../src/log/index.ts';
import type { AppServerLock, LaunchDocument } from '../../src/protocol/index.ts';
import { program, programEnvironment } from '../programs.ts';
import { configureWorkspace } from '../workspace-config.ts';
import { enginesOfServer } from './shared-engines.ts';

interface Teardown {
  teardown(work: () => unknown): void;
}

export const deadlineMs = 180_000;

export function temporaryDirectory(t: Teardown): string {
  const directory = realpathSync(mkdtempSync(join(tmpdir(), 'oratorio-appserver-')));
  t.teardown(() => rmSync(directory, { recursive: true, force: true, maxRetries: 5 }));
  return directory;
}

/** New workspace in an otherwise empty directory that also serves as home. */
export function makeWorkspace(t: Teardown, config: unknown = {}): { path: string; home: string } {
  const home = temporaryDirectory(t);
  const path = join(home, 'workspace');
  configureWorkspace({ home, workspace: path }, config);
  return { path, home };
}

/** Directory of the state of a workspace that lies in its home, as `makeWorkspace` makes it. */
export const stateOf = (path: string, home: string = dirname(path)): string => workspaceStateDirectory(home, path);

export const lockFile = (path: string, home?: string): string => join(stateOf(path, home), 'appserver.json');

export function readLock(path: string, home?: string): AppServerLock | undefined {
  const file = lockFile(path, home);
  return existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as AppServerLock) : undefined;
}

/** Tries until `probe` gives something. */
export async function eventually<T>(probe: () => T | undefined | Promise<T | undefined>, what: string): Promise<T> {
  const deadline = performance.now() + deadlineMs;
  for (;;) {
    const began = performance.now();
    const found = await probe();
    if (found !== undefined) return found;
    if (performance.now() > deadline) throw new Error(`did not happen within ${deadlineMs} ms: ${what}`);
    // To read all processes must not take most of a core.
    await sleep(Math.min(Math.max(10, 4 * (performance.now() - began)), 100));
  }
}

/** A server in this process. */
export async function startServer(
  t: Teardown,
  provider?: ModelProvider,
  { config = {}, ...more }: Partial<AppServerOptions> & { readonly config?: unknown } = {},
): Promise<{ server: AppServer; path: string; home: string; log: string[] }> {
  const { path, home } = makeWorkspace(t, config);
  const otherHome = more.env?.['ORATORIO_HOME'];
  if (otherHome !== undefined && otherHome !== home) configureWorkspace({ home: otherHome, workspace: path }, config);
  const log: string[] = [];
  const logger = createLogger({
    name: 'test',
    level: 'debug',
    pretty: false,
    stream: { write: (line) => log.push(line) },
  });
  const server = await startAppServer({
    workspacePath: path,
    env: { ORATORIO_HOME: home },
    logger,
    ...(provider && { provider: async () => provider }),
    checkpointEngines: enginesOfServer(),
    ...more,
  });
  t.teardown(() => server.close());
  return { server, path, home, log };
}

export interface ServerProcess {
  readonly child: ChildProcess;
  /** Everything it has written. */
  output(): string;
  /** Resolves with its exit code, or the signal that ended it. */
  readonly ended: Promise<number | NodeJS.Signals>;
}

export interface SpawnServer {
  readonly path?: string;
  readonly home: string;
  readonly args?: readonly string[];
  readonly stdin?: string;
  readonly env?: Readonly<Record<string, string>>;
  /** Program and its words that run the server: a limit, for example. */
  readonly before?: readonly string[];
  /** Program of the server, with its arguments; default: the agent server. */
  readonly program?: readonly string[];
}

const entry = program('src/appserver/main.ts');

/** Server in its own process, killed after the test if it still runs. */
export function spawnServer(
  t: Teardown,
  { path, home, args = [], stdin, env = {}, before = [], program }: SpawnServer,
): ServerProcess {
  const workspace = path === undefined ? [] : ['--workspace', path];
  const own = program ?? [entry, ...workspace, ...args];
  const [command = '', ...words] = [...before, process.execPath, '--disable-warning=ExperimentalWarning', ...own];
  const child = spawn(command, words, {
    cwd: home,
    env: { ...programEnvironment, ORATORIO_HOME: home, ...env },
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  const chunks: string[] = [];
  for (const stream of [child.stdout, child.stderr]) stream?.on('data', (chunk) => chunks.push(String(chunk)));
  const ended = once(child, 'close').then(([code, signal]) => (code ?? signal) as number | NodeJS.Signals);
  // A child that has ended already does not read.
  child.stdin?.on('error', () => {});
  child.stdin?.end(stdin);
  t.teardown(async () => {
    child.kill('SIGKILL');
    await ended;
  });
  return { child, output: () => chunks.join(''), ended };
}

/** Waits until the process has published its address. */
export async function serving(server: ServerProcess, path: string): Promise<AppServerLock> {
  return eventually(() => {
    const { exitCode, signalCode } = server.child;
    if (exitCode !== null || signalCode !== null)
      throw new Error(`it ended with ${exitCode ?? signalCode}: ${server.output()}`);
    const lock = readLock(path);
    return lock?.pid === server.child.pid ? lock : undefined;
  }, 'the server publishes its address');
}

export function launchDocument(path: string, hubStatePath = '/nowhere'): LaunchDocument {
  return {
    version: 1,
    workspacePath: path,
    incarnation: 'incarnation-1',
    adoptionProof: 'proof-of-adoption',
    hubStatePath,
    notificationToken: 'notification-token-secret',
    services: { appServerWebSocket: { host: '127.0.0.1', port: 0, token: 'web-socket-token-secret' } },
  };
}

// biome-ignore lint/suspicious/noExplicitAny: tests assert messages field by field
export type Message = any;

/** Answers of JSON-RPC 2.0, declared apart from the reader of `src/rpc`. */
const answer = { jsonrpc: v.literal('2.0'), id: v.union([v.string(), v.pipe(v.number(), v.safeInteger())]) };
export const RpcSuccess = v.object({ ...answer, result: v.unknown() });
export const RpcFailure = v.object({
  ...answer,
  id: v.nullable(answer.id),
  error: v.object({ code: v.number(), message: v.string(), data: v.optional(v.unknown()) }),
});

/** One JSON-RPC connection. `kind` selects the WebSocket: Node's own or the `ws` package's. */
export class Client {
  readonly messages: Message[] = [];
  readonly closed: Promise<{ code: number; reason: string }>;
  readonly #socket: WebSocket | ThirdPartySocket;
  readonly #waiting = new Set<() => void>();
  #nextId = 1;
  #end: { code: number; reason: string } | undefined;

  private constructor(socket: WebSocket | ThirdPartySocket) {
    this.#socket = socket;
    this.closed = new Promise((resolve) => {
      socket.onclose = ({ code, reason }: { code: number; reason: string }) => {
        this.#end = { code, reason };
        resolve(this.#end);
        for (const check of this.#waiting) check();
      };
    });
    socket.onmessage = ({ data }: { data: unknown }) => {
      this.messages.push(JSON.parse(String(data)));
      for (const check of this.#waiting) check();
    };
  }

  static async open(t: Teardown, url: string, kind: 'node' | 'ws' = 'node'): Promise<Client> {
    const socket = kind === 'node' ? new WebSocket(url) : new ThirdPartySocket(url);
    const client = new Client(socket);
    await new Promise<void>((resolve, reject) => {
      socket.onopen = () => resolve();
      socket.onerror = () => reject(new Error('the WebSocket was refused'));
    });
    t.teardown(() => client.close());
    return client;
  }

  /** Opened, introduced, and ready for notifications. */
  static async ready(
    t: Teardown,
    url: string,
    capabilities: unknown = {},
    kind: 'node' | 'ws' = 'node',
  ): Promise<Client> {
    const client = await Client.open(t, url, kind);
    await client.call('initialize', { clientInfo: { name: 'test', version: '1' }, capabilities });
    client.send({ jsonrpc: '2.0', method: 'initialized', params: {} });
    return client;
  }

  /** Sends a message; a string is sent unchanged. */
  send(message: unknown): void {
    this.#socket.send(typeof message === 'string' ? message : JSON.stringify(message));
  }

  /** Sends a request and gives the whole answer. */
  ask(method: string, params?: unknown): Promise<Message> {
    const id = `t${this.#nextId++}`;
    this.send({ jsonrpc: '2.0', id, method, ...(params !== undefined && { params }) });
    return this.until((message) => message.id === id, `an answer to ${method}`);
  }

  /** The result of a request that must succeed. */
  async call(method: string, params?: unknown): Promise<Message> {
    const answer = await this.ask(method, params);
    if (answer.error) throw new Error(`${method}: ${JSON.stringify(answer.error)}`);
    return answer.result;
  }

  /** The first message, old or new, that fits. */
  until(fits: (message: Message) => boolean, what: string): Promise<Message> {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => settle(() => reject(new Error(`did not come: ${what}`))), deadlineMs);
      const check = () => {
        const found = this.messages.find(fits);
        if (found !== undefined) settle(() => resolve(found));
        else if (this.#end) settle(() => reject(new Error(`closed (${this.#end?.code}) before ${what}`)));
      };
      const settle = (act: () => void) => {
        clearTimeout(timer);
        this.#waiting.delete(check);
        act();
      };
      this.#waiting.add(check);
      check();
    });
  }

  notification(method: string): Promise<Message> {
    return this.until((message) => message.method === method, method);
  }

  /** Methods of the notifications so far. */
  heard(): string[] {
    return this.messages.flatMap(({ method }) => (method === undefined ? [] : [method]));
  }

  async close(): Promise<void> {
    this.#socket.close();
    await this.closed;
  }
}

export const words = (text: string) => [{ type: 'text' as const, text }];

/** A promise that the test settles. */
export function deferred<T>() {
  let resolve: (value: T) => void = () => {};
  let reject: (error: unknown) => void = () => {};
  const promise = new Promise<T>((onValue, onError) => {
    resolve = onValue;
    reject = onError;
  });
  return { promise, resolve, reject };
}
