import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import * as v from 'valibot';
import { pinned } from './machine.ts';

const cleanups = new Set<() => void>();

/** Runs `cleanup` when this process ends, however it ends short of SIGKILL. Returns a function that takes it back. */
export function onExit(cleanup: () => void): () => void {
  cleanups.add(cleanup);
  return () => cleanups.delete(cleanup);
}

function cleanUp(): void {
  for (const cleanup of [...cleanups].reverse()) {
    cleanups.delete(cleanup);
    try {
      cleanup();
    } catch (error) {
      console.error('cleaning up failed:', error);
    }
  }
}

process.on('exit', cleanUp);
for (const [signal, code] of [
  ['SIGINT', 130],
  ['SIGTERM', 143],
  ['SIGHUP', 129],
] as const) {
  process.on(signal, () => process.exit(code));
}

export interface StartOptions {
  readonly command: string;
  readonly args: readonly string[];
  /** Core it is pinned to, where that is possible. */
  readonly core?: number;
  readonly env?: Readonly<Record<string, string>>;
  /** Default: that of this process. */
  readonly cwd?: string;
}

export interface Started {
  readonly pid: number;
  readonly child: ChildProcess;
  /** Kills its whole process group. */
  stop(): Promise<void>;
}

const started = new Set<Started>();

/** Starts a process in a group of its own that dies with this one. Its standard input stays open until it is stopped. */
export function start({ command, args, core, env, cwd }: StartOptions): Started {
  const [file, line] = pinned(core, command, args);
  const child = spawn(file, line, {
    detached: true,
    stdio: ['pipe', 'pipe', 'pipe'],
    env: { ...process.env, ...env },
    cwd,
  });
  const { pid } = child;
  if (pid === undefined) throw new Error(`${command} cannot be started`);
  const kill = (): void => {
    try {
      process.kill(-pid, 'SIGKILL');
    } catch {
      // The process has ended on its own.
    }
  };
  const takeBack = onExit(kill);
  child.on('error', () => {});
  child.stdin.on('error', () => {});
  let text = '';
  child.stderr.on('data', (bytes) => {
    text = (text + bytes).slice(-4_000);
  });
  const own: Started = {
    pid,
    child,
    async stop() {
      started.delete(own);
      if (child.exitCode === null && child.signalCode === null) {
        const gone = once(child, 'exit');
        kill();
        await gone;
      }
      takeBack();
    },
  };
  started.add(own);
  child.once('exit', (code) => {
    if (started.delete(own) && code !== 0) console.error(`${command} ${args.join(' ')} ended with ${code}:\n${text}`);
  });
  return own;
}

/** Stops everything `start` has started and that still runs. */
export async function stopAll(): Promise<void> {
  await Promise.all([...started].map((process) => process.stop()));
}

const Addresses = v.object({ port: v.number(), control: v.optional(v.number()) });

export interface Peer extends Started {
  readonly port: number;
  readonly control: number | undefined;
}

/** Starts a server and waits for the line in which it says where it serves. Rejects when it ends, or says nothing for 15 s. */
export async function startPeer(options: StartOptions): Promise<Peer> {
  const process = start(options);
  const line = await firstLine(process.child, 15_000);
  const { port, control } = v.parse(Addresses, JSON.parse(line));
  return { ...process, port, control };
}

/** The first line of standard output. */
export async function firstLine(child: ChildProcess, withinMs: number): Promise<string> {
  if (child.stdout === null) throw new Error('standard output is not a pipe');
  const signal = AbortSignal.timeout(withinMs);
  const lines = createInterface({ input: child.stdout });
  const line = once(lines, 'line', { signal }).then(([text]) => String(text));
  const end = once(child, 'exit', { signal }).then(([code]) => {
    throw new Error(`${child.spawnargs.join(' ')} ended with ${code} before it was ready`);
  });
  end.catch(() => {});
  return Promise.race([line, end]);
}

/** Runs a load client to its end and returns its output, validated. Rejects when it fails. */
export async function runLoad<T>(
  command: string,
  args: readonly (string | number)[],
  schema: v.GenericSchema<unknown, T>,
): Promise<T> {
  const [file, line] = pinned(1, command, args.map(String));
  const child = spawn(file, line, { stdio: ['ignore', 'pipe', 'pipe'] });
  const takeBack = onExit(() => child.kill('SIGKILL'));
  let output = '';
  let errors = '';
  child.stdout.on('data', (bytes) => {
    output += bytes;
  });
  child.stderr.on('data', (bytes) => {
    errors += bytes;
  });
  const [code] = await once(child, 'close');
  takeBack();
  if (code !== 0) throw new Error(`${command} ended with ${code}: ${errors}`);
  return v.parse(schema, JSON.parse(output));
}
