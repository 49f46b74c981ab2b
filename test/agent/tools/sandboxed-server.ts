/** Agent servers with sandboxed commands, one after the other in one workspace, which tests kill. */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Test } from 'tap';
import type { ToolResult } from '../../../src/agent/tool.ts';
import type { ExecSettings } from '../../../src/agent/tools/exec/exec.ts';
import { endKept, keptDirectory, keptMarker } from '../../../src/supervise/index.ts';
import { scanProcesses } from '../../../src/supervise/scan.ts';
import { program } from '../../programs.ts';
import { until } from '../../supervise/helpers.ts';
import { temporaryWorkspace } from './run-tool.ts';

export interface Order {
  readonly kind: string;
  readonly [name: string]: unknown;
}

/** A workspace, and its servers. */
export function sandboxedPlace(t: Test, overrides: Partial<ExecSettings> = {}) {
  const workspacePath = temporaryWorkspace(t);
  const home = temporaryWorkspace(t);
  const directory = keptDirectory(home, workspacePath);
  const records = join(home, 'sandboxes');
  const settings = {
    ...{ timeoutMs: 60_000, maxTimeoutMs: 120_000, maxOutputChars: 4_000, sandbox: 'required', network: 'deny', home },
    pathRules: { blockedPaths: [], protectedDirectories: [home] },
    ...{ environment: {}, passEnvironment: [], secrets: ['sk-0123456789abcdef'] },
    keep: { directory, patienceSeconds: 600 },
    ...overrides,
  };
  t.teardown(() => endKept(directory));
  const markers: string[] = [];
  const survivors = async () =>
    (await scanProcesses())
      .filter(({ zombie, marker }) => {
        const ours = [keptMarker(directory), ...markers];
        return !zombie && typeof marker === 'object' && ours.some((each) => marker.value.startsWith(each));
      })
      .map(({ pid }) => pid);
  const filesIn = (path: string) => (existsSync(path) ? readdirSync(path) : []);
  /** Checks that no process, record or placeholder is left. */
  const isClean = async () => {
    t.strictSame(await survivors(), [], 'no process is left');
    t.strictSame(
      filesIn(directory).filter((name) => name !== 'owner'),
      [],
      'no file of a command is left',
    );
    t.strictSame(
      filesIn(records).filter((name) => !name.endsWith('.json')),
      [],
      'no record of a sandbox is left',
    );
  };
  const at = (name: string) => join(workspacePath, name);
  const git = (...words: string[]) =>
    execFileSync('git', ['-c', 'user.name=a', '-c', 'user.email=a@b', ...words], { cwd: workspacePath, stdio: 'pipe' });
  /** @param environment of commands @param variables of the server */
  const start = (environment: Record<string, string> = {}, variables: Record<string, string> = {}) => {
    const marker = `sandboxed-${randomUUID()}`;
    const earlier = markers.at(-1);
    markers.push(marker);
    return startServer(t, { settings, workspacePath, environment, marker, earlier }, variables);
  };
  return { workspacePath, home, directory, records, settings, survivors, isClean, at, git, start };
}

async function startServer(t: Test, order: object, variables: Record<string, string>) {
  const words = ['--conditions=development', '--disable-warning=ExperimentalWarning'];
  const fixture = program('test/fixtures/process/sandboxed-server.mjs');
  const child: ChildProcess = spawn(process.execPath, [...words, fixture, JSON.stringify(order)], {
    stdio: ['pipe', 'pipe', 'inherit'],
    env: { ...process.env, ...variables },
  });
  t.teardown(() => child.kill('SIGKILL'));
  const exited = new Promise<void>((resolve) => child.once('close', () => resolve()));
  const answers = new Map<string, (line: { result?: unknown; error?: string }) => void>();
  const shown = new Map<string, string>();
  let isReady = false;
  if (child.stdout) {
    createInterface({ input: child.stdout }).on('line', (text) => {
      const line = JSON.parse(text);
      if (line.isReady) isReady = true;
      else if (line.output !== undefined) shown.set(line.id, (shown.get(line.id) ?? '') + line.output);
      else answers.get(line.id)?.(line);
    });
  }
  await until('the server', () => isReady);
  let count = 0;
  /** Sends an order. */
  const send = (each: Order) => {
    const id = `order-${++count}`;
    const answer = new Promise<{ result?: unknown; error?: string }>((resolve) => answers.set(id, resolve));
    child.stdin?.write(`${JSON.stringify({ ...each, id })}\n`);
    return { id, answer, showed: (text: string) => until(text, () => (shown.get(id) ?? '').includes(text)) };
  };
  const ask = async <T>(each: Order): Promise<T> => {
    const { result, error } = await send(each).answer;
    if (error !== undefined) throw new Error(error);
    return result as T;
  };
  /** Runs a command, or adopts that of the call. */
  const run = (command: string, more: object = {}, args: object = {}) =>
    send({ kind: 'run', args: { command, ...args }, ...more });
  const adopt = (more: object = {}) =>
    ask<ToolResult>({ kind: 'run', args: { command: 'echo again' }, wasStarted: true, ...more });
  const call = (command: string, more: object = {}, args: object = {}) =>
    ask<ToolResult>({ kind: 'run', args: { command, ...args }, ...more });
  return {
    ...{ exited, send, ask, run, adopt, call, child },
    async kill() {
      child.kill('SIGKILL');
      await exited;
    },
    async close() {
      child.stdin?.write(`${JSON.stringify({ kind: 'close', id: 'close' })}\n`);
      await exited;
    },
    async handOver() {
      child.stdin?.write(`${JSON.stringify({ kind: 'handOver', id: 'handOver' })}\n`);
      await exited;
    },
  };
}

export type SandboxedServer = Awaited<ReturnType<typeof startServer>>;
