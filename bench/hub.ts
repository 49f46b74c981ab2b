import { spawn } from 'node:child_process';
import { closeSync, mkdirSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { Agent, request as httpRequest } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as v from 'valibot';
import { hubFlags } from '../src/client/start-hub.ts';
import { HubLock } from '../src/protocol/index.ts';
import { onExit, pinned, wait } from './harness.ts';

/** Command of a Hub, with the flags of `oratorio up`. @param root checkout with a build */
const commandOf = (root: string): string[] => [...hubFlags, join(root, 'bin', 'oratorio.js')];

/** A directory tree of this run: the home of a Hub, and workspaces beside it. */
export interface Place {
  readonly home: string;
  /** Makes a workspace and returns its path. */
  workspace(name: string): string;
  remove(): void;
}

export function makePlace(): Place {
  const root = mkdtempSync(join(tmpdir(), 'oratorio-bench-hub-'));
  const remove = (): void => rmSync(root, { recursive: true, force: true, maxRetries: 5 });
  const takeBack = onExit(remove);
  return {
    home: join(root, 'home'),
    workspace(name) {
      const path = join(root, name);
      mkdirSync(join(path, '.oratorio'), { recursive: true, mode: 0o700 });
      writeFileSync(join(path, '.oratorio', 'config.json'), '{}\n', { mode: 0o600 });
      return path;
    },
    remove() {
      takeBack();
      remove();
    },
  };
}

export interface Answer {
  readonly status: number;
  readonly text: string;
}

export interface Hub {
  readonly pid: number;
  readonly port: number;
  readonly token: string;
  /** From spawning the process to the first answer of `GET /v1/status`. */
  readonly startMs: number;
  request(method: string, path: string, body?: unknown): Promise<Answer>;
  /** Shuts it down with everything it runs. */
  stop(): Promise<void>;
  /** Kills it with SIGKILL; its agent servers run on. */
  kill(): Promise<void>;
}

/** A child that has ended stays a zombie while this process blocks: that is not alive. */
function isAlive(pid: number): boolean {
  try {
    return !/^State:\s+[ZX]/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
  } catch {
    return false;
  }
}

/** Asks for the end every half second, in the end without asking. */
const endings = 30;

/** Blocks: for use where the process is about to end. The Hub takes its agent servers with it. */
function endNow(pid: number): void {
  const cell = new Int32Array(new SharedArrayBuffer(4));
  for (let attempt = 0; attempt <= endings && isAlive(pid); attempt += 1) {
    process.kill(pid, attempt < endings ? 'SIGTERM' : 'SIGKILL');
    for (let waited = 0; waited < 500 && isAlive(pid); waited += 20) Atomics.wait(cell, 0, 0, 20);
  }
}

/** Lock of this process; a killed Hub leaves its own. */
function published(lockFile: string, pid: number): HubLock | undefined {
  try {
    const lock = v.parse(HubLock, JSON.parse(readFileSync(lockFile, 'utf8')));
    return lock.pid === pid ? lock : undefined;
  } catch {
    return undefined;
  }
}

/** Only a hang reaches it: a Hub that knows 4,000 workspaces starts in seconds, and on a busy machine in some ten. */
const startDeadlineMs = 120_000;

/** Starts the built `oratorio hub` and waits for its first answer. */
export async function startHub(
  place: Place,
  options: { adapter?: 'uws' | 'node'; core?: number; root?: string | undefined } = {},
): Promise<Hub> {
  const { adapter = 'uws', core, root = join(import.meta.dirname, '..') } = options;
  mkdirSync(place.home, { recursive: true, mode: 0o700 });
  const log = openSync(join(place.home, 'bench-hub.log'), 'a', 0o600);
  const [file, args] = pinned(core, process.execPath, [...commandOf(root), 'hub']);
  const from = performance.now();
  const child = spawn(file, args, {
    detached: true,
    stdio: ['ignore', log, log],
    env: { ...process.env, ORATORIO_HOME: place.home, ORATORIO_HTTP_ADAPTER: adapter },
  });
  closeSync(log);
  const { pid } = child;
  if (pid === undefined) throw new Error('the Hub cannot be started');
  const takeBack = onExit(() => endNow(pid));
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  const agent = new Agent({ keepAlive: true, maxSockets: 256 });

  const lockFile = join(place.home, 'hub', 'hub.lock');
  let lock = published(lockFile, pid);
  while (lock === undefined) {
    if (child.exitCode !== null || performance.now() - from > startDeadlineMs) {
      const said = readFileSync(join(place.home, 'bench-hub.log'), 'utf8').slice(-2_000);
      // The process would write into a directory that its caller removes.
      endNow(pid);
      throw new Error(`the Hub does not serve:\n${said}`);
    }
    await wait(1);
    lock = published(lockFile, pid);
  }
  const { token, apiBaseUrl } = lock;
  const port = Number(new URL(apiBaseUrl).port);
  const request = (method: string, path: string, body?: unknown) => send({ agent, port, token, method, path, body });
  const first = await request('GET', '/v1/status');
  if (first.status !== 200) throw new Error(`GET /v1/status: ${first.status} ${first.text}`);
  return {
    pid,
    port,
    token,
    startMs: performance.now() - from,
    request,
    async stop() {
      await request('POST', '/v1/shutdown', {}).catch(() => {});
      await ended;
      agent.destroy();
      takeBack();
    },
    async kill() {
      child.kill('SIGKILL');
      await ended;
      agent.destroy();
      takeBack();
    },
  };
}

interface Sending {
  readonly agent: Agent;
  readonly port: number;
  readonly token: string;
  readonly method: string;
  readonly path: string;
  readonly body: unknown;
}

function send({ agent, port, token, method, path, body }: Sending): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const text = body === undefined ? undefined : JSON.stringify(body);
    const headers = {
      authorization: `Bearer ${token}`,
      ...(text === undefined ? {} : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) }),
    };
    const outgoing = httpRequest({ agent, host: '127.0.0.1', port, method, path, headers }, (response) => {
      let answer = '';
      response.setEncoding('utf8');
      response.on('data', (chunk: string) => {
        answer += chunk;
      });
      response.once('end', () => resolve({ status: response.statusCode ?? 0, text: answer }));
      response.once('error', reject);
    });
    outgoing.once('error', reject);
    outgoing.end(text);
  });
}

const Ensured = v.object({
  state: v.string(),
  pid: v.nullable(v.number()),
  page: v.string(),
  endpoints: v.record(v.string(), v.string()),
});
/** Running workspace. */
export type Running = v.InferOutput<typeof Ensured> & { readonly pid: number };

/** Ensures a workspace runs. Rejects when it does not run. @param more further fields of the request */
export async function ensureRunning(hub: Hub, workspacePath: string, more: object = {}): Promise<Running> {
  const { status, text } = await hub.request('POST', '/v1/appservers/ensure', { workspacePath, ...more });
  if (status !== 200) throw new Error(`ensure: ${status} ${text}`);
  const { pid, ...record } = v.parse(Ensured, JSON.parse(text));
  if (record.state !== 'running' || pid === null) throw new Error(`ensure gave a workspace that is ${record.state}`);
  return { ...record, pid };
}

/** Ensures a workspace runs. Returns the pid of its agent server; rejects when it does not run. */
export const ensure = async (hub: Hub, workspacePath: string): Promise<number> =>
  (await ensureRunning(hub, workspacePath)).pid;
