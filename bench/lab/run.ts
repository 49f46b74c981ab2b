/** One task with one harness: a new repository, a new home, an upstream of its own, and the result. */
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import {
  appendFileSync,
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { killMarked, markerVariable } from '../../src/supervise/index.ts';
import type { Harness, Place } from './harnesses.ts';
import { solutionOf } from './model.ts';
import type { Task } from './task.ts';
import { type Forward, startUpstream } from './upstream.ts';

export interface Outcome {
  readonly harness: string;
  readonly task: string;
  readonly isSolved: boolean;
  /** Why not. */
  readonly reason?: string;
  readonly requests: number;
  /** Size of all request bodies. */
  readonly bytes: number;
  readonly ms: number;
}

export interface RunOptions {
  /** Asks a real model in place of the scripted one. */
  readonly real?: Forward;
  /** Limits one run, milliseconds. */
  readonly limitMs: number;
  /** The directory is left for a look, with all requests in `requests.jsonl`; its name is printed. */
  readonly keep?: boolean;
}

const isExecutable = (path: string): boolean => path.endsWith('.sh') || path.startsWith('bin/');

function writeFiles(directory: string, files: Readonly<Record<string, string>>): void {
  for (const [path, content] of Object.entries(files)) {
    const file = join(directory, path);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, content);
    if (isExecutable(path)) chmodSync(file, 0o755);
  }
}

/** Makes the repository of a task, with one commit. */
export function makeRepository(directory: string, task: Task, env: Readonly<Record<string, string>>): void {
  mkdirSync(directory, { recursive: true });
  writeFiles(directory, task.files);
  const git = (...args: string[]) =>
    execFileSync('git', ['-c', 'user.name=lab', '-c', 'user.email=lab@localhost', ...args], { cwd: directory, env });
  git('init', '-q', '-b', 'main');
  git('add', '-A');
  git('commit', '-q', '-m', 'The state before the task');
}

/** @returns the problem of the repository; absent when the task is solved */
export function faultOf(
  directory: string,
  task: Task,
  env: Readonly<Record<string, string>>,
  isScripted: boolean,
): string | undefined {
  const solution = solutionOf(task);
  const content = (path: string) => {
    const file = join(directory, path);
    return existsSync(file) ? readFileSync(file, 'utf8') : undefined;
  };
  // The scripted model means exactly one text. A real one may solve the task in its own way, but must leave the tests alone.
  for (const [path, wanted] of Object.entries({ ...task.files, ...solution })) {
    if (!isScripted && path in solution) continue;
    if (content(path) !== wanted) return path in solution ? `${path} is not as it was meant` : `${path} was changed`;
  }
  const { status, stdout, error } = spawnSync('sh', ['-c', task.test], {
    cwd: directory,
    env,
    encoding: 'utf8',
    timeout: 60_000,
  });
  if (status === 0) return undefined;
  return error === undefined
    ? `the test fails: ${stdout.trim().split('\n').at(-1)}`
    : `the test cannot be run: ${error.message}`;
}

/** Runs a command to its end. @returns its exit code, or why it has none */
async function runHarness(
  [command = '', ...args]: readonly string[],
  { workspace, env }: Place,
  limitMs: number,
): Promise<{ code: number | string; output: string }> {
  const child = spawn(command, args, { cwd: workspace, env, stdio: ['ignore', 'pipe', 'pipe'], detached: true });
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => {
      output += text;
    });
  let isLate = false;
  const limit = setTimeout(() => {
    isLate = true;
    child.kill('SIGKILL');
  }, limitMs);
  try {
    return await new Promise((resolve, reject) => {
      child.on('error', reject);
      // Not `close`: remaining processes of a harness may hold its output open.
      child.on('exit', (code, signal) =>
        resolve({ code: isLate ? `not ended after ${limitMs} ms` : (code ?? signal ?? 1), output }),
      );
    });
  } finally {
    clearTimeout(limit);
    child.stdout.destroy();
    child.stderr.destroy();
  }
}

/** @throws when the harness cannot be prepared */
export async function runTask(
  harness: Harness,
  task: Task,
  { real, limitMs, keep = false }: RunOptions,
): Promise<Outcome> {
  const base = realpathSync(mkdtempSync(join(tmpdir(), 'oratorio-lab-')));
  const workspace = join(base, 'work');
  const home = join(base, 'home');
  const marker = randomUUID();
  mkdirSync(home);
  const env = {
    ...{ HOME: home, PATH: process.env['PATH'] ?? '', LANG: 'C.UTF-8', [markerVariable]: marker },
    ...harness.env,
    ...task.env?.(workspace),
  };
  makeRepository(workspace, task, env);
  const onBody = (body: string) => keep && appendFileSync(join(base, 'requests.jsonl'), `${body}\n`);
  const upstream = await startUpstream({ task, workspace, real, onBody });
  const place: Place = { workspace, home, endPoint: upstream.endPoint, env };
  try {
    const command = harness.prepare(place);
    const from = performance.now();
    const { code, output } = await runHarness([...command, task.prompt], place, limitMs);
    const ms = performance.now() - from;
    const failure = code === 0 ? undefined : `${harness.name} ended with ${code}: ${output.trim().split('\n').at(-1)}`;
    const reason = upstream.counts.trouble ?? failure ?? faultOf(workspace, task, env, real === undefined);
    const { requests, bytes } = upstream.counts;
    return {
      harness: harness.name,
      task: task.name,
      isSolved: reason === undefined,
      ...(reason !== undefined && { reason }),
      requests,
      bytes,
      ms,
    };
  } finally {
    harness.end?.(place);
    await killMarked(marker);
    await upstream.close();
    if (keep) console.error(`Kept: ${base}`);
    else rmSync(base, { recursive: true, force: true, maxRetries: 5 });
  }
}
