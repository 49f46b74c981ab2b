/** Real Hubs in their own processes, real workspaces, and clients independent of the product. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { trustWorkspace, workspaceTrust } from '../../src/config/index.ts';
import type { AnyHubEvent, AppServerRecord, HubLock } from '../../src/protocol/index.ts';
import { readIdentity } from '../../src/supervise/index.ts';
import { unusedPort } from '../ports.ts';
import { program } from '../programs.ts';
import { pauseAfter } from '../supervise/helpers.ts';

interface Teardown {
  teardown(callback: () => unknown): void;
}

const commandOf = (source: string) => ({
  command: process.execPath,
  args: ['--disable-warning=ExperimentalWarning', program(source)],
});
export const agentServerFixture = (name: string) => commandOf(`test/fixtures/agent-servers/${name}`);
const realAgentServer = commandOf('src/appserver/main.ts');

export function fixture(name: string): string {
  return fileURLToPath(new URL(`../fixtures/${name}`, import.meta.url));
}

/** New directory, removed after the test. */
export function temporaryDirectory(t: Teardown, prefix = 'oratorio-test-'): string {
  const directory = realpathSync(mkdtempSync(join(tmpdir(), prefix)));
  t.teardown(() => rmSync(directory, { recursive: true, force: true, maxRetries: 5 }));
  return directory;
}

/** Settings of a workspace as far as tests care. */
export interface TestConfig {
  readonly Supervision?: Readonly<Record<string, unknown>>;
  readonly [section: string]: unknown;
}

/** Settings for tests with many restarts. Deadlines stay long, so that a slow machine does not look like a failed server. */
export const quick = { Supervision: { BackoffBaseMs: 20, ProbeIntervalMs: 100 } };

/**
 * Deadlines that only a hang reaches on a machine that is busy or slow. The first two are the longest that still end before a request to
 * the Hub does (90 s).
 */
export const patience = { startDeadlineMs: 80_000, proxyDeadlineMs: 80_000, probeTimeoutMs: 60_000 };

/** Text of a configuration file, with the deadlines of `patience` unless the test sets others. */
export function configText({ Supervision, ...config }: TestConfig): string {
  return JSON.stringify({
    ...config,
    Supervision: { StartDeadlineMs: patience.startDeadlineMs, ProbeTimeoutMs: patience.probeTimeoutMs, ...Supervision },
  });
}

/** A workspace with this configuration. */
export function makeWorkspace(t: Teardown, config: TestConfig = {}, name = 'workspace'): string {
  const directory = join(temporaryDirectory(t, 'oratorio-ws-'), name);
  mkdirSync(join(directory, '.oratorio'), { recursive: true });
  writeFileSync(join(directory, '.oratorio', 'config.json'), configText(config));
  workspaces.add(directory);
  for (const home of homes) trustWorkspace({ home, workspace: directory });
  t.teardown(() => workspaces.delete(directory));
  return directory;
}

/** The Hubs of a test trust the workspaces of a test, whichever was made first. */
const [homes, workspaces] = [new Set<string>(), new Set<string>()];

function trustAll(t: Teardown, home: string): void {
  homes.add(home);
  for (const workspacePath of workspaces) trustAsUser(home, { workspacePath });
  t.teardown(() => homes.delete(home));
}

/** Tries until `probe` gives something, at most `deadlineMs`. */
export async function eventually<T>(
  probe: () => T | undefined | Promise<T | undefined>,
  what: string | (() => string),
  deadlineMs = 180_000,
) {
  const deadline = Date.now() + deadlineMs;
  for (;;) {
    const began = performance.now();
    const value = await probe();
    if (value !== undefined && value !== false) return value as Exclude<T, false | undefined>;
    if (Date.now() > deadline) {
      throw new Error(`did not happen within ${deadlineMs} ms: ${typeof what === 'string' ? what : what()}`);
    }
    await sleep(pauseAfter(performance.now() - began));
  }
}

export function isAlive(pid: number): boolean {
  return readIdentity(pid) !== 'gone';
}

/** Ends a process that may have ended already. */
export function killIfThere(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

/** Marks all processes of a Hub: a Hub passes `XDG_…` on to sidecars too, unlike the variables of Oratorio. */
const homeVariable = 'XDG_TEST_ORATORIO_HOME';

/**
 * Processes of this machine whose environment names this user home: everything a Hub of it has started.
 *
 * @param variable `ORATORIO_HOME` for a Hub that the product started, and its agent servers
 */
export function processesOf(home: string, variable = homeVariable): number[] {
  if (process.platform !== 'linux') return [];
  const { readdirSync } = process.getBuiltinModule('node:fs');
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
    .filter((pid) => {
      try {
        return readFileSync(`/proc/${pid}/environ`, 'utf8').split('\0').includes(`${variable}=${home}`);
      } catch {
        return false;
      }
    })
    .map(Number);
}

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  // biome-ignore lint/suspicious/noExplicitAny: bodies of all routes, compared field by field
  readonly body: any;
}

/** One request on a connection of its own. */
export async function request(
  { apiBaseUrl, token }: HubLock,
  method: string,
  path: string,
  body?: unknown,
  headers: Record<string, string> = {},
): Promise<Answer> {
  const response = await fetch(apiBaseUrl + path, {
    method,
    headers: { authorization: `Bearer ${token}`, connection: 'close', ...headers },
    ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  });
  const text = await response.text();
  const isJson = response.headers.get('content-type')?.includes('json');
  return { status: response.status, headers: response.headers, body: isJson ? JSON.parse(text) : text };
}

/** For messages of failed tests. */
export function howItEnded({ exitCode, signalCode }: ChildProcess): string {
  if (exitCode === null && signalCode === null) return 'runs';
  return `has ended (${signalCode ?? exitCode})`;
}

export interface TestHub {
  readonly home: string;
  readonly child: ChildProcess;
  readonly lock: HubLock;
  /** Output of the process so far. */
  output(): string;
  call(method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<Answer>;
  ensure(workspacePath: string, more?: Record<string, unknown>): Promise<AppServerRecord>;
  record(workspacePath: string): Promise<AppServerRecord>;
  events(): Promise<EventTap>;
  kill(signal: NodeJS.Signals): Promise<void>;
  /** Orderly end; resolves when the process has gone. */
  shutdown(mode?: 'stop' | 'detach'): Promise<void>;
}

export interface HubSetup {
  readonly home?: string;
  readonly agentServer?: { command: string; args: string[] };
  /** Changes of the supervision policy of all tests. */
  readonly policy?: Readonly<Record<string, number>>;
  readonly env?: Record<string, string>;
  /** False: the user trusts no workspace. Default: every requested workspace is trusted. */
  readonly trustsWorkspaces?: boolean;
}

/** Agrees to the settings of the workspace that a request names, as its user would. */
function trustAsUser(home: string, body: unknown): void {
  const { workspacePath: workspace } = (body ?? {}) as { readonly workspacePath?: unknown };
  if (typeof workspace !== 'string') return;
  try {
    if (workspaceTrust({ home, workspace }).trust === 'restricted') trustWorkspace({ home, workspace });
  } catch {
    // Left to the Hub, which reports an invalid path or an unreadable file.
  }
}

export function hubStatePath(home: string): string {
  return join(home, 'hub');
}

export function readHubLock(home: string): HubLock | undefined {
  try {
    return JSON.parse(readFileSync(join(hubStatePath(home), 'hub.lock'), 'utf8')) as HubLock;
  } catch {
    return undefined;
  }
}

/** The first Hub of a home takes a port that no other test takes while the next Hub of that home starts. */
async function keepPort(home: string): Promise<void> {
  const file = join(hubStatePath(home), 'port.json');
  if (existsSync(file)) return;
  mkdirSync(hubStatePath(home), { recursive: true, mode: 0o700 });
  writeFileSync(file, JSON.stringify({ version: 1, port: await unusedPort() }), { mode: 0o600 });
}

/** Starts a Hub process and waits until it serves. After the test all its processes are killed. */
export async function startTestHub(t: Teardown, setup: HubSetup = {}): Promise<TestHub> {
  const home = setup.home ?? temporaryDirectory(t, 'oratorio-home-');
  trustAll(t, home);
  await keepPort(home);
  const { child, output } = spawnHub(home, setup);
  t.teardown(() => endAll(home, child));
  const lock = await eventually(
    () => {
      if (child.exitCode !== null) throw new Error(`the Hub ended with ${child.exitCode}: ${output()}`);
      const published = readHubLock(home);
      return published?.pid === child.pid ? published : undefined;
    },
    () => `the Hub (${child.pid}) publishes its lock file; it said: ${output()}`,
  );

  async function call(
    method: string,
    path: string,
    body?: unknown,
    headers: Record<string, string> = {},
  ): Promise<Answer> {
    if (setup.trustsWorkspaces ?? true) trustAsUser(home, body);
    try {
      return await request(lock, method, path, body, headers);
    } catch (error) {
      // The Hub knows most about a missing answer.
      throw new Error(`${method} ${path}: the Hub ${howItEnded(child)}, it said: ${output()}`, { cause: error });
    }
  }

  return {
    home,
    child,
    lock,
    output,
    call,
    async ensure(workspacePath, more = {}) {
      const answer = await call('POST', '/v1/appservers/ensure', { workspacePath, ...more });
      if (answer.status !== 200) throw new Error(`ensure: ${answer.status} ${JSON.stringify(answer.body)} ${output()}`);
      return answer.body;
    },
    record: async (path) => (await call('GET', `/v1/appservers/by-workspace?path=${encodeURIComponent(path)}`)).body,
    events: () => tapEvents(t, lock),
    async kill(signal) {
      child.kill(signal);
      if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
    },
    async shutdown(mode = 'stop') {
      await call('POST', `/v1/shutdown?mode=${mode}`);
      if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
    },
  };
}

export function spawnHub(home: string, setup: HubSetup = {}) {
  const child = spawn(
    process.execPath,
    ['--conditions=development', '--disable-warning=ExperimentalWarning', program('test/fixtures/hub/hub.ts')],
    {
      env: {
        ...process.env,
        NODE_OPTIONS: '',
        ORATORIO_LOG: 'debug',
        ...setup.env,
        ORATORIO_HOME: home,
        [homeVariable]: home,
        TEST_POLICY: JSON.stringify({ proxyDeadlineMs: patience.proxyDeadlineMs, handOverMs: 0, ...setup.policy }),
        TEST_AGENT_SERVER: JSON.stringify(setup.agentServer ?? realAgentServer),
      },
      stdio: ['ignore', 'pipe', 'pipe'],
    },
  );
  let text = '';
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (chunk) => (text += chunk));
  return { child, output: () => text };
}

async function endAll(home: string, child: ChildProcess): Promise<void> {
  if (child.exitCode === null && child.signalCode === null) {
    child.kill('SIGTERM');
    await Promise.race([once(child, 'exit'), sleep(12_000, undefined, { ref: false })]);
  }
  for (const pid of processesOf(home)) killIfThere(pid);
}

export interface EventTap {
  readonly seen: AnyHubEvent[];
  /** The first event from here on, or one already seen, that fits. */
  wait(kind: string, fits?: (event: AnyHubEvent) => boolean): Promise<AnyHubEvent>;
  readonly ended: Promise<void>;
  close(): void;
}

/** Reads `GET /v1/events` with nothing but fetch and string functions. */
async function tapEvents(t: Teardown, lock: HubLock): Promise<EventTap> {
  const closing = new AbortController();
  const response = await fetch(`${lock.apiBaseUrl}/v1/events`, {
    headers: { authorization: `Bearer ${lock.token}`, accept: 'text/event-stream' },
    signal: closing.signal,
  });
  const seen: AnyHubEvent[] = [];
  const read = async () => {
    let text = '';
    const decoder = new TextDecoder();
    for await (const chunk of response.body ?? []) {
      text += decoder.decode(chunk as Uint8Array, { stream: true });
      const records = text.split('\n\n');
      text = records.pop() ?? '';
      for (const record of records) {
        const data = record.split('\n').find((line) => line.startsWith('data: '));
        if (data) seen.push(JSON.parse(data.slice(6)));
      }
    }
  };
  // The stream ends when the Hub ends or the test closes it; both are ordinary here.
  const ended = read().catch(() => undefined);
  t.teardown(() => closing.abort());
  return {
    seen,
    ended,
    wait: (kind, fits = () => true) =>
      eventually(() => seen.find((event) => event.kind === kind && fits(event)), `event ${kind}`),
    close: () => closing.abort(),
  };
}
