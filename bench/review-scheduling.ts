import { execFileSync } from 'node:child_process';
import { createHash, createHmac } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import * as v from 'valibot';
import { commitFiles, Forge, type ForgePull } from '../test/review/forge/index.ts';
import { type Benchmark, type Context, figure, median, onExit, type Result, start, until, wait } from './harness.ts';

const secret = 'the secret of the benchmark';
/** Files of the repository, and the number that a pull request changes. */
const files = 200;
const changedFiles = 8;
/** Text that brings a payload to the size of GitHub's own of a pull request. */
const filler = 'x'.repeat(20_000);
/** Pause between two reviews, in which the work of the last one ends. */
const restMs = 150;
/** Reviews that are not counted: the engine compiles during the first ones. */
const warmUps = 8;

const parts = ['forge', 'store', 'prepare', 'files'] as const;
const Span = v.object({ part: v.picklist(parts), from: v.number(), to: v.number() });
type Span = v.InferOutput<typeof Span>;
const Turn = v.object({
  number: v.number(),
  askedAt: v.number(),
  at: v.number(),
  spans: v.array(Span),
  programs: v.array(v.string()),
});
const Said = v.union([
  v.object({ url: v.string(), token: v.string() }),
  v.object({ warm: v.number() }),
  v.object({ turn: Turn }),
  v.object({ over: v.string() }),
  v.object({ asked: v.array(v.number()) }),
]);
type Said = v.InferOutput<typeof Said>;

const now = (): number => Number(process.hrtime.bigint()) / 1e6;
const textOf = (file: number, isChanged: boolean): string =>
  Array.from({ length: 60 }, (_, line) =>
    isChanged && line % 20 === 7 ? `changed(${file}, ${line});` : `call(${file}, ${line});`,
  ).join('\n');
const treeOf = (count: number, isChanged: boolean) =>
  Object.fromEntries(
    Array.from({ length: count }, (_, file) => [`src/part-${file % 10}/file-${file}.ts`, textOf(file, isChanged)]),
  );

/** The backend's process, as lines that it says. */
class Backend {
  readonly #child: ReturnType<typeof start>;
  readonly #said: Said[] = [];
  #wake = () => {};

  constructor(args: readonly string[]) {
    const script = join(import.meta.dirname, 'peers', 'review-scheduling.ts');
    this.#child = start({
      command: process.execPath,
      args: ['--disable-warning=ExperimentalWarning', script, ...args],
    });
    if (!this.#child.child.stdout) throw new Error('standard output is not a pipe');
    this.#child.child.once('exit', () => this.#wake());
    createInterface({ input: this.#child.child.stdout }).on('line', (line) => {
      this.#said.push(v.parse(Said, JSON.parse(line)));
      this.#wake();
    });
  }

  ask(what: object): void {
    this.#child.child.stdin?.write(`${JSON.stringify(what)}\n`);
  }

  /** The next message with `key`; earlier ones are dropped. */
  async next<const K extends string>(key: K): Promise<Extract<Said, Record<K, unknown>>> {
    const deadline = setTimeout(() => this.#child.stop(), 60_000);
    try {
      for (;;) {
        const found = this.#said.shift();
        if (found && key in found) return found as Extract<Said, Record<K, unknown>>;
        if (found) continue;
        if (this.#child.child.exitCode !== null || this.#child.child.signalCode !== null)
          throw new Error(`the backend has ended, or has not said ${key} for a minute`);
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
      }
    } finally {
      clearTimeout(deadline);
    }
  }

  stop(): Promise<void> {
    return this.#child.stop();
  }
}

/** One review, from the first byte of the delivery to the turn. Milliseconds. */
interface Review {
  readonly total: number;
  /** Until GitHub has its answer. */
  readonly answered: number;
  readonly forge: number;
  readonly questions: number;
  readonly prepare: number;
  readonly files: number;
  readonly store: number;
  readonly rest: number;
  readonly programs: readonly string[];
  readonly legs: readonly number[];
}

/** How long at least one of them was under way, without the spans in `covered`. */
function lasted(spans: readonly Span[], covered: readonly Span[] = []): number {
  return measure([...spans, ...covered]) - measure(covered);
}
function measure(spans: readonly Span[]): number {
  let sum = 0;
  let until = Number.NEGATIVE_INFINITY;
  for (const { from, to } of spans.toSorted((one, other) => one.from - other.from)) {
    sum += Math.max(0, to - Math.max(from, until));
    until = Math.max(until, to);
  }
  return sum;
}

/** Points that divide the way to the turn into legs; each leg is named after its work. */
const legNames = [
  'delivery → its 202: checked, stored',
  '202 → first question: the job is taken',
  'the pull request is read',
  '→ second question: stored, judged, queued, taken by a run',
  'the pull request is read again',
  '→ git: stored',
  'git prepares the worktree and the diff',
  '→ agent: rules of the base commit, files chosen, stored',
  '→ turn/start: stored which thread it is',
] as const;

function reviewOf(
  { askedAt, at, spans, programs }: v.InferOutput<typeof Turn>,
  sentAt: number,
  answeredAt: number,
): Review {
  const within = spans.flatMap(({ part, from, to }) =>
    to < sentAt || from > at ? [] : [{ part, from: Math.max(from, sentAt), to: Math.min(to, at) }],
  );
  const of = (part: Span['part']) => within.filter((span) => span.part === part);
  const [first, second] = of('forge').toSorted((one, other) => one.from - other.from);
  const [prepare] = of('prepare');
  if (!first || !prepare) throw new Error('A review has left out a part of its way');
  // A backend that knows the answer does not ask again.
  const again = second ?? { from: first.to, to: first.to };
  const cuts = [sentAt, answeredAt, first.from, first.to, again.from, again.to, prepare.from, prepare.to, askedAt, at];
  const slow = [...of('forge'), ...of('prepare'), ...of('files')];
  return {
    total: at - sentAt,
    answered: answeredAt - sentAt,
    forge: lasted(of('forge')),
    questions: of('forge').length,
    prepare: lasted(of('prepare')),
    files: lasted(of('files')),
    store: lasted(of('store'), slow),
    rest: at - sentAt - measure(within),
    programs,
    legs: cuts.slice(1).map((cut, index) => cut - (cuts[index] ?? cut)),
  };
}

interface Scene {
  readonly forge: Forge;
  readonly backend: Backend;
  readonly url: string;
  readonly pulls: readonly ForgePull[];
}

async function open(home: string, count: number): Promise<Scene> {
  const forge = await new Forge({ validates: false }).start();
  onExit(() => void forge.stop());
  const repo = await forge.addGitRepository('acme', 'shop', { ...treeOf(files, false), 'AGENTS.md': 'Be kind.\n' });
  const directory = repo.gitDirectory ?? '';
  await commitFiles(directory, 'change', treeOf(changedFiles, true), { from: 'main' });
  const workspace = join(home, 'shop');
  execFileSync('git', ['clone', '--quiet', directory, workspace]);
  const configFile = join(home, 'oratorio.config.json');
  writeFileSync(configFile, JSON.stringify(settingsOf(forge, workspace)), { mode: 0o600 });
  const backend = new Backend([configFile, join(home, 'state'), workspace]);
  const { url, token: serviceToken } = await backend.next('url');
  await until('the first look at the repository', 60_000, 50, async () => {
    const answer = await fetch(`${url}/api/v1/sources`, { headers: { authorization: `Bearer ${serviceToken}` } });
    const [source] = v.parse(v.array(v.object({ lastSyncAt: v.nullish(v.unknown()) })), await answer.json());
    return source?.lastSyncAt ?? undefined;
  });
  const pulls: ForgePull[] = [];
  for (let number = 1; number <= count; number += 1) pulls.push(await forge.openPull(repo, { number }));
  const token = tokenFor(forge, repo.installationId);
  for (const { number, headSha, baseSha } of pulls) {
    backend.ask({ number, headSha, baseSha, token });
    await backend.next('warm');
  }
  return { forge, backend, url, pulls };
}

/** A token of the forge that git may read with. */
function tokenFor({ tokens }: Forge, installationId: number): string {
  const value = 'token of the benchmark';
  const permissions = { contents: 'read' };
  tokens.set(createHash('sha256').update(value).digest('hex'), {
    installationId,
    repositories: undefined,
    permissions,
    expiresAt: Number.POSITIVE_INFINITY,
  });
  return value;
}

const settingsOf = (forge: Forge, workspace: string) => ({
  Oratorio: {
    Server: { Port: 0 },
    GitHub: {
      ...{ Endpoint: forge.apiUrl, WebhookSecret: secret, Repositories: ['acme/shop'] },
      ...{ AppId: String(forge.app.id), PrivateKey: forge.app.privateKey },
    },
    AgentServer: { RepositoryWorkspaceRoutes: [{ Project: 'acme/shop', WorkspacePath: workspace }] },
    // A poll by the clock would come in between.
    Automation: { AutoReviewRepositories: ['*'], SyncIntervalSeconds: 86_400 },
  },
});

async function deliver(url: string, number: number): Promise<{ readonly sentAt: number; readonly answeredAt: number }> {
  const body = JSON.stringify({
    action: 'opened',
    repository: { full_name: 'acme/shop' },
    pull_request: { number, body: filler },
  });
  const signature = createHmac('sha256', secret).update(body).digest('hex');
  const headers = {
    'content-type': 'application/json',
    'x-github-event': 'pull_request',
    'x-github-delivery': `bench-${number}`,
    'x-hub-signature-256': `sha256=${signature}`,
  };
  const sentAt = now();
  const answer = await fetch(`${url}/api/v1/sources/github/webhook`, { method: 'POST', body, headers });
  const answeredAt = now();
  if (answer.status !== 202) throw new Error(`The delivery was answered ${answer.status}: ${await answer.text()}`);
  await answer.arrayBuffer();
  return { sentAt, answeredAt };
}

/** Cost of one question to a server that only answers. */
async function bareQuestion(backend: Backend): Promise<number> {
  const answer = JSON.stringify({ filler: filler.slice(0, 3_000) });
  const server = createServer((_, response) => response.setHeader('content-type', 'application/json').end(answer));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  backend.ask({ url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`, times: 200 });
  const { asked } = await backend.next('asked');
  server.closeAllConnections();
  server.close();
  return median(asked.slice(50));
}

async function run({ quick }: Context): Promise<Result> {
  const home = mkdtempSync(join(tmpdir(), 'oratorio-bench-'));
  onExit(() => rmSync(home, { recursive: true, force: true }));
  const { forge, backend, url, pulls } = await open(home, warmUps + (quick ? 20 : 100));
  try {
    const bare = await bareQuestion(backend);
    const reviews: Review[] = [];
    for (const { number } of pulls) {
      const { sentAt, answeredAt } = await deliver(url, number);
      const { turn } = await backend.next('turn');
      if (turn.number !== number) throw new Error(`Pull request ${turn.number} was reviewed, not ${number}`);
      reviews.push(reviewOf(turn, sentAt, answeredAt));
      await backend.next('over');
      await wait(restMs);
    }
    return resultOf(reviews.slice(warmUps), bare);
  } finally {
    await backend.stop();
    await forge.stop();
    rmSync(home, { recursive: true, force: true });
  }
}

const percentile = (values: readonly number[], share: number): number =>
  values.toSorted((one, other) => one - other)[Math.floor((values.length - 1) * share)] ?? Number.NaN;

function resultOf(reviews: readonly Review[], bare: number): Result {
  const row = (name: string, of: (review: Review) => number) => {
    const values = reviews.map(of);
    return [name, median(values), percentile(values, 0.95)];
  };
  /** The forge of the tests thinks about its answers; GitHub would too, and that is not ours. */
  const own = (review: Review): number => review.total - review.forge + review.questions * bare;
  const [first] = reviews;
  const programs = first?.programs.join(', ') ?? '';
  return {
    tables: [
      {
        title: 'From a signed delivery to the turn of the agent, on a warm mirror',
        columns: ['', 'p50 ms', 'p95 ms'],
        rows: [
          row('delivery → its 202', ({ answered }) => answered),
          row('delivery → turn/start', ({ total }) => total),
          row('the same, with a forge that answers at once', own),
          row('of it: git prepares', ({ prepare }) => prepare),
          row('rules are read from the base commit', ({ files }) => files),
          row('waiting for answers of the forge', ({ forge }) => forge),
          row('in the database', ({ store }) => store),
          row('everything else', ({ rest }) => rest),
          ['one question to a server that only answers', bare, bare],
        ],
      },
      {
        title: 'The same, leg by leg',
        columns: ['', 'p50 ms', 'p95 ms'],
        rows: legNames.map((name, index) => row(name, ({ legs }) => legs[index] ?? Number.NaN)),
      },
    ],
    checks: [
      {
        what: 'delivery → turn/start, without the forge, p50',
        measured: median(reviews.map(own)),
        atMost: 40,
        unit: ' ms',
      },
    ],
    notes: [
      `${reviews.length} pull requests of ${changedFiles} files in a repository of ${files}, one after the other; ${figure(median(reviews.map(({ questions }) => questions)))} questions to the forge each.`,
      `Programs started: ${programs}.`,
    ],
  };
}

export const reviewScheduling: Benchmark = {
  name: 'review-scheduling',
  title: 'From a delivery to a review that begins',
  run,
};
