import { mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import t, { type Test } from 'tap';
import type { RestartPolicy } from '../../machines/index.ts';
import type { Tool, ToolContext, ToolResult } from '../../src/agent/index.ts';
import { ConfigError, trustWorkspace, userConfigFile, workspaceConfigFile } from '../../src/config/index.ts';
import { createLogger } from '../../src/log/index.ts';
import { McpServers, type McpServersOptions } from '../../src/mcp/index.ts';
import type { McpServerSettings, McpServerStatus } from '../../src/protocol/index.ts';
import { markerVariable } from '../../src/supervise/index.ts';
import { scanProcesses } from '../../src/supervise/scan.ts';
import { program, programEnvironment } from '../programs.ts';

const here = (path: string): string => fileURLToPath(new URL(path, import.meta.url));
const packages = '../../node_modules/@modelcontextprotocol';

export const everything = here(`${packages}/server-everything/dist/index.js`);
export const filesystem = here(`${packages}/server-filesystem/dist/index.js`);
export const small = program('test/fixtures/mcp/stdio-server.mjs');

/** Begins the marker of every process that this test file starts. */
const marker = `mcp-test-${process.pid}.`;

type Stdio = McpServerSettings & { readonly transport: 'stdio' };
type Http = McpServerSettings & { readonly transport: 'streamableHttp' };
const common = { enabled: true, startupTimeoutSec: 120, toolTimeoutSec: 120, trusted: false };

/** A server that Node runs. */
export const stdio = (args: readonly string[], changes: Partial<Stdio> = {}): Stdio => ({
  ...common,
  transport: 'stdio',
  command: process.execPath,
  args: [...args],
  env: {},
  envVars: [],
  ...changes,
});

export const http = (url: string, changes: Partial<Http> = {}): Http => ({
  ...common,
  transport: 'streamableHttp',
  url,
  httpHeaders: {},
  envHttpHeaders: {},
  ...changes,
});

/** Quick to try again, and hard to discourage. */
export const quick: RestartPolicy = {
  restart: 'onFailure',
  maxRestarts: 100_000,
  withinMs: 60_000,
  backoffBaseMs: 20,
  backoffCapMs: 200,
  stableAfterMs: 30_000,
};

export interface Room {
  readonly servers: McpServers;
  readonly workspace: string;
  readonly home: string;
  /** Everything that was logged. */
  readonly logged: string[];
  /** Every reported status. */
  readonly statuses: McpServerStatus[];
}

interface RoomOptions extends Partial<Pick<McpServersOptions, 'restartPolicy' | 'observe' | 'traceparent'>> {
  readonly env?: Readonly<Record<string, string>>;
  /** Servers of the user's configuration. */
  readonly inherited?: Readonly<Record<string, unknown>>;
  /** The workspace's configuration file as text, in place of the one that holds `servers`. */
  readonly file?: string;
  /** Default: true. */
  readonly isTrusted?: boolean;
}

/** `McpServers` over a new workspace and home, closed with the test, before any start. */
export function room(
  t: Test,
  servers: Readonly<Record<string, McpServerSettings>>,
  { env = {}, inherited = {}, file, isTrusted = true, ...options }: RoomOptions = {},
): Room {
  const base = realpathSync(mkdtempSync(join(tmpdir(), 'oratorio-mcp-')));
  const [home, workspace] = [join(base, 'home'), join(base, 'workspace')];
  write(
    userConfigFile(home),
    JSON.stringify({ McpServers: inherited, Supervision: { PassEnvironment: Object.keys(env) } }),
  );
  write(workspaceConfigFile(workspace), file ?? JSON.stringify({ McpServers: servers }, null, 2));
  if (isTrusted) trustFileAsWritten(home, workspace);
  const logged: string[] = [];
  const statuses: McpServerStatus[] = [];
  const mcp = new McpServers({
    servers,
    home,
    workspacePath: workspace,
    env: { ...programEnvironment, [markerVariable]: marker, ...env },
    logger: createLogger({ name: 'test', level: 'debug', stream: { write: (line) => logged.push(line) } }),
    ...options,
  });
  mcp.onStatus((status) => statuses.push(status));
  t.teardown(async () => {
    await mcp.close();
    rmSync(base, { recursive: true, force: true });
  });
  return { servers: mcp, workspace, home, logged, statuses };
}

/** Trusts the workspace unless its file is broken. */
function trustFileAsWritten(home: string, workspace: string): void {
  try {
    trustWorkspace({ home, workspace });
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
  }
}

function write(path: string, text: string): void {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
}

export const configOf = ({ workspace }: Room): string => readFileSync(workspaceConfigFile(workspace), 'utf8');

/** Resolves with the first status of a server that `isSo` accepts, beginning with the present one. */
export function reached(
  { servers }: Room,
  name: string,
  isSo: (status: McpServerStatus) => boolean,
): Promise<McpServerStatus> {
  return new Promise((resolve) => {
    const stop = servers.onStatus((status) => look(status));
    const now = servers.status().find((status) => status.name === name);
    if (now) look(now);
    function look(status: McpServerStatus): void {
      if (status.name !== name || !isSo(status)) return;
      stop();
      resolve(status);
    }
  });
}

export const inState = (room: Room, name: string, state: McpServerStatus['startupState']): Promise<McpServerStatus> =>
  reached(room, name, ({ startupState }) => startupState === state);

/** The only tool whose name ends so. */
export function toolOf({ servers }: Room, end: string): Tool {
  const found = servers.tools().filter(({ name }) => name.endsWith(end));
  if (found.length !== 1 || !found[0]) throw new Error(`${found.length} tools end with ${end}`);
  return found[0];
}

export interface CallOptions {
  readonly signal?: AbortSignal;
  readonly onOutput?: (text: string) => void;
  readonly elicit?: ToolContext['elicit'];
  readonly remote?: ToolContext['remote'];
}

/** Runs a tool as a turn would. */
export async function call(
  room: Room,
  end: string,
  args: unknown,
  { signal = new AbortController().signal, onOutput = () => {}, elicit, remote }: CallOptions = {},
): Promise<ToolResult> {
  const tool = toolOf(room, end);
  const parsed = tool.parse(args);
  if (!parsed.ok) throw new Error(parsed.error);
  const context: ToolContext = {
    workspacePath: room.workspace,
    threadId: 'thread',
    turnId: 'turn',
    callId: 'call',
    signal,
    onOutput,
    elicit,
    remote,
    isApproved: () => false,
    spawnSubagent: () => Promise.reject(new Error('no sub-agents here')),
  };
  return tool.run(parsed.args, context);
}

/** Resolves when `condition` holds, checked at short intervals. */
export async function until(what: string, condition: () => boolean | Promise<boolean>): Promise<void> {
  const deadline = performance.now() + 120_000;
  while (!(await condition())) {
    if (performance.now() > deadline) throw new Error(`never: ${what}`);
    await sleep(10);
  }
}

/** Pids of all running processes that servers of this test file have started. */
export async function living(): Promise<number[]> {
  const all = await scanProcesses();
  return all
    .filter(({ zombie, marker: found }) => !zombie && typeof found === 'object' && found.value.startsWith(marker))
    .map(({ pid }) => pid);
}

/** The last test of each file. */
export function nothingLeft(): void {
  t.test('no process of these tests is left', async (t) => t.strictSame(await living(), []));
}
