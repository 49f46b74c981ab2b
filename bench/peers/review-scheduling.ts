/**
 * A review backend that reports how it came to a turn of the agent: everything real but the agent, which only says when it is
 * asked. For `review-scheduling.ts`, which talks to it over standard input and output, in lines of JSON. Times are of the
 * machine's monotonic clock, in milliseconds.
 *
 *     review-scheduling.ts CONFIG STATE WORKSPACE
 */
import { subscribe } from 'node:diagnostics_channel';
import { createInterface } from 'node:readline';
import { DatabaseSync, StatementSync } from 'node:sqlite';
import * as v from 'valibot';
import { createLogger } from '../../src/log/index.ts';
import type { ReviewAgent } from '../../src/review/agent/index.ts';
import { createRoutedGit } from '../../src/review/backend/git.ts';
import type { PreparedReview, ReviewGit, ReviewTarget } from '../../src/review/git/index.ts';
import { startBackend } from '../../src/review/index.ts';
import { loadSettings } from '../../src/review/settings/index.ts';

const [configFile = '', stateDirectory = '', workspacePath = ''] = process.argv.slice(2);
const now = (): number => Number(process.hrtime.bigint()) / 1e6;
const say = (what: object): void => void process.stdout.write(`${JSON.stringify(what)}\n`);

type Part = 'forge' | 'store' | 'prepare' | 'files';
/** Work since the last turn. */
let spans: { readonly part: Part; readonly from: number; readonly to: number }[] = [];
let programs: string[] = [];

async function timed<T>(part: Part, work: () => Promise<T>): Promise<T> {
  const from = now();
  try {
    return await work();
  } finally {
    spans.push({ part, from, to: now() });
  }
}

/** Every call into SQLite: they block. */
function timeCalls(prototype: object, names: readonly string[]): void {
  for (const name of names) {
    const original: (this: unknown, ...given: unknown[]) => unknown = Reflect.get(prototype, name);
    Reflect.set(prototype, name, function (this: unknown, ...given: unknown[]) {
      const from = now();
      try {
        return original.apply(this, given);
      } finally {
        spans.push({ part: 'store', from, to: now() });
      }
    });
  }
}
timeCalls(StatementSync.prototype, ['all', 'get', 'run']);
timeCalls(DatabaseSync.prototype, ['exec']);

const realFetch = globalThis.fetch;
globalThis.fetch = (...given) =>
  timed('forge', async () => {
    const response = await realFetch(...given);
    // With its body: the backend reads it whole.
    const { status, headers } = response;
    return new Response(status === 304 ? null : await response.arrayBuffer(), { status, headers });
  });

subscribe('child_process', (message) => {
  const { process: child } = message as { readonly process: { readonly spawnargs: readonly string[] } };
  // The event comes before the arguments are known.
  queueMicrotask(() => programs.push(child.spawnargs.slice(4).find((word) => !word.startsWith('-')) ?? '?'));
});

const { settings } = loadSettings({ file: configFile, env: {}, stateRoot: stateDirectory });
const real = createRoutedGit(() => settings, {});
const timedFiles = (prepared: PreparedReview): PreparedReview => ({
  ...prepared,
  baseFiles: (path) => timed('files', () => prepared.baseFiles(path)),
});
const git: ReviewGit = {
  ...real,
  prepare: async (target) => timedFiles(await timed('prepare', () => real.prepare(target))),
  async release(runId, outcome) {
    await real.release(runId, outcome);
    // Programs from now on belong to the next review.
    programs = [];
    say({ over: runId });
  },
};

const agent: ReviewAgent = {
  async review({ run: { runId, number } }, { onTurn }) {
    const askedAt = now();
    await onTurn({ threadId: `thread-${runId}`, turnId: null });
    say({ turn: { number, askedAt, at: now(), spans, programs } });
    spans = [];
    return { threadId: `thread-${runId}`, turnId: 'turn', summary: 'Fine.', findings: [], resolved: [], warnings: [] };
  },
  interrupt: async () => {},
  traceUrl: async () => undefined,
  status: async () => ({ state: 'reachable' }),
  close: async () => {},
};

const backend = await startBackend({
  ...{ configFile, stateDirectory, env: {} },
  logger: createLogger({ name: 'bench', level: 'warn', stream: process.stderr }),
  overrides: { agent, git },
});
say({ url: backend.url, token: backend.token() });

/** Fetches the objects of a pull request, so that its review finds them at hand. */
async function warm({ number, headSha, baseSha, token }: v.InferOutput<typeof Warm>): Promise<void> {
  const target: ReviewTarget = {
    ...{ runId: `warm-${number}`, workspacePath, number, headSha, baseRef: 'main', baseSha, sinceSha: null },
    repository: { instance: 'forge', owner: 'acme', name: 'shop' },
    token: async () => token,
  };
  await real.prepare(target);
  await real.release(target.runId, 'succeeded');
  say({ warm: number });
}

/** Sends the question to a server that only answers: the cost of the request on this side. */
async function ask({ url, times }: v.InferOutput<typeof Ask>): Promise<void> {
  const found: number[] = [];
  for (let time = 0; time < times; time += 1) {
    const from = now();
    await (await realFetch(url)).arrayBuffer();
    found.push(now() - from);
  }
  say({ asked: found });
}

const Warm = v.object({ number: v.number(), headSha: v.string(), baseSha: v.string(), token: v.string() });
const Ask = v.object({ url: v.string(), times: v.number() });
for await (const line of createInterface({ input: process.stdin })) {
  const wish = v.parse(v.union([Warm, Ask]), JSON.parse(line));
  await ('url' in wish ? ask(wish) : warm(wish));
  spans = [];
  programs = [];
}
await backend.close();
