/** Reviews by a real agent server in a process of its own, whose model follows the test. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import * as v from 'valibot';
import { createLogger } from '../../../src/log/index.ts';
import type { AgentLimits, ReviewAssignment, ReviewHooks } from '../../../src/review/agent/index.ts';
import { createReviewAgent } from '../../../src/review/agent/index.ts';
import { parseDiff, selectFiles } from '../../../src/review/anchors/index.ts';
import type { PreparedReview } from '../../../src/review/git/index.ts';
import { BackendSettings } from '../../../src/review/settings/index.ts';
import type { StoredFinding, StoredItem, StoredRun } from '../../../src/review/store/index.ts';
import { makeWorkspace, type ServerProcess, serving, spawnServer } from '../../appserver/harness.ts';
import { type MockUpstream, type Reply, startMockUpstream } from '../../fixtures/upstream/mock-upstream.ts';
import { Repository } from '../anchors/repository.ts';

export interface Teardown {
  teardown(work: () => unknown): void;
}

export type Files = Readonly<Record<string, string>>;

export const before: Files = {
  'src/total.ts': 'export function total(prices: number[]): number {\n  return prices.reduce((a, b) => a + b, 0);\n}\n',
  'README.md': '# Shop\n',
};
export const after: Files = {
  ...before,
  'src/total.ts':
    'export function total(prices: number[]): number {\n  let sum = 0;\n  for (let i = 0; i <= prices.length; i++) sum += prices[i];\n  return sum;\n}\n',
};
/** The faulty line of `after`. */
export const faulty = '  for (let i = 0; i <= prices.length; i++) sum += prices[i];';

export const item: StoredItem = {
  itemId: 'item-1',
  repositoryKey: 'github:github.com/acme/shop',
  number: 7,
  title: 'Sum in a loop',
  description: 'Faster than reduce.',
  author: 'mallory',
  authorAssociation: 'NONE',
  isBot: false,
  state: 'open',
  isDraft: false,
  isFork: true,
  labels: [],
  baseRef: 'main',
  baseSha: 'b'.repeat(40),
  headRef: 'loop',
  headSha: 'a'.repeat(40),
  url: 'https://github.com/acme/shop/pull/7',
  updatedAt: 0,
  dispatchedHeadSha: null,
  reviewedHeadSha: null,
  reviewedBaseSha: null,
  automaticReviews: 0,
  isPaused: false,
  summaryCommentId: null,
  deliveryId: null,
};

export const run: StoredRun = {
  runId: 'run-1',
  itemId: item.itemId,
  repositoryKey: item.repositoryKey,
  number: item.number,
  trigger: 'manual',
  scope: 'full',
  focus: null,
  deliveryId: null,
  headSha: item.headSha,
  baseSha: item.baseSha,
  sinceSha: null,
  state: 'reviewing',
  attempt: 1,
  nextAttemptAt: null,
  threadId: null,
  turnId: null,
  draftId: null,
  worktreePath: null,
  error: null,
  isCancelRequested: false,
  createdAt: 0,
  startedAt: 0,
  finishedAt: null,
};

export const openFinding = (findingId: string, more: Partial<StoredFinding> = {}): StoredFinding => ({
  findingId,
  draftId: 'draft-0',
  itemId: item.itemId,
  severity: 'major',
  kind: 'comment',
  title: `title of ${findingId}`,
  body: `body of ${findingId}`,
  path: 'src/total.ts',
  side: 'RIGHT',
  line: 2,
  placement: 'inline',
  fingerprint: `print of ${findingId}`,
  status: 'accepted',
  isResolved: false,
  isPublished: true,
  warnings: [],
  commentId: 1,
  threadNodeId: null,
  url: null,
  ...more,
});

const knownDiffs = new Map<string, string>();

/** Diff by git of two states of a tree; git is asked once for the same states. */
export function diffOf(directory: string, old: Files, now: Files): string {
  const key = JSON.stringify([old, now]);
  const diff = knownDiffs.get(key) ?? diffByGit(directory, old, now);
  knownDiffs.set(key, diff);
  return diff;
}

function diffByGit(directory: string, old: Files, now: Files): string {
  const repository = new Repository(join(directory, `repository-${Math.random().toString(36).slice(2)}`));
  return repository.git(['diff', '--no-color', repository.tree(old), repository.tree(now)]);
}

export function writeFiles(directory: string, files: Files): void {
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(directory, path)), { recursive: true });
    writeFileSync(join(directory, path), text);
  }
}

export interface AssignmentOptions {
  readonly worktreePath?: string;
  readonly old?: Files;
  readonly now?: Files;
  /** The state at the review before this one. */
  readonly since?: Files;
  readonly maxDiffBytes?: number;
  readonly more?: Partial<ReviewAssignment>;
}

/** Makes an assignment as the runs do. `directory` is for git. */
export function assignmentOf(directory: string, options: AssignmentOptions = {}): ReviewAssignment {
  const { worktreePath = '/nowhere', old = before, now = after, since, maxDiffBytes = 1_000_000, more } = options;
  const changeOf = (from: Files) => {
    const diff = diffOf(directory, from, now);
    const files = parseDiff(diff).map(({ path, oldPath, status, isBinary, isSubmodule, isSymlink }) => ({
      ...{ path, oldPath, status, isBinary, isSubmodule, isSymlink },
      ...{ additions: 1, deletions: 1, isNameBroken: false },
    }));
    return { diff, isDiffCut: false, files };
  };
  const change = changeOf(old);
  const prepared: PreparedReview = {
    ...change,
    worktreePath,
    headSha: item.headSha,
    baseSha: item.baseSha,
    mergeBaseSha: item.baseSha,
    scope: since ? 'incremental' : 'full',
    fullReason: since ? null : 'notAsked',
    since: since ? changeOf(since) : null,
    omitted: [],
    baseFiles: async (path) => old[path] ?? null,
    readHead: async (path) => now[path] ?? null,
    changeSince: async () => null,
    readHeadBytes: async (paths) =>
      new Map(paths.map((path) => [path, now[path] === undefined ? null : Buffer.from(now[path])])),
    readHeadFiles: async (paths) => new Map(paths.map((path) => [path, now[path] ?? null])),
  };
  const diffFiles = parseDiff(change.diff);
  return {
    run,
    item,
    workspacePath: '/nowhere',
    prepared,
    diffFiles,
    selection: selectFiles(diffFiles, { ignorePaths: [], maxFiles: 100, maxDiffBytes }),
    instructions: [],
    openFindings: [],
    maxFindings: 10,
    ...more,
  };
}

/** Hooks that record their calls. */
export function hooksOf(signal = new AbortController().signal) {
  const turns: { threadId: string; turnId: string | null }[] = [];
  let activity = 0;
  const hooks: ReviewHooks = {
    signal,
    onTurn: async (turn) => {
      turns.push(turn);
    },
    onActivity: () => {
      activity += 1;
    },
  };
  return { hooks, turns, activity: () => activity };
}

export interface Stage {
  readonly workspace: string;
  readonly home: string;
  readonly worktree: string;
  readonly server: ServerProcess;
  readonly upstream: MockUpstream;
  /** Address of the agent server, with its token. */
  readonly url: string;
  readonly log: string[];
  readonly assignment: (more?: AssignmentOptions) => ReviewAssignment;
  /** Another backend. */
  readonly newAgent: () => ReturnType<typeof createReviewAgent>;
  readonly agent: ReturnType<typeof createReviewAgent>;
}

export interface StageOptions {
  readonly now?: Files;
  readonly config?: Readonly<Record<string, unknown>>;
  readonly limits?: Partial<AgentLimits>;
  /** In the worktree but not in the diff. */
  readonly extra?: Files;
}

/** Parts that stages may share. */
type Theatre = Pick<Stage, 'workspace' | 'home' | 'server' | 'upstream' | 'url'>;

/** An agent server with `reply` for a model, a worktree with the change, and a backend's agent. */
export async function stage(t: Teardown, reply: Reply, options: StageOptions = {}): Promise<Stage> {
  return play(t, await build(t, reply, options.config), options, 'run-1');
}

/** Stages on one agent server, which ends with `file`; each has a worktree, a model and a backend's agent of its own. */
export function stages(file: Teardown): (t: Teardown, reply: Reply, options?: StageOptions) => Promise<Stage> {
  let reply: Reply = () => [];
  let theatre: Promise<Theatre> | undefined;
  let played = 0;
  return async (t, ownReply, options = {}) => {
    theatre ??= build(file, (request) => reply(request), {});
    const built = await theatre;
    const { upstream } = built;
    const earlier = upstream.requests.length;
    reply = ownReply;
    played += 1;
    const ownUpstream: MockUpstream = {
      ...upstream,
      get requests() {
        return upstream.requests.slice(earlier);
      },
    };
    return play(t, { ...built, upstream: ownUpstream }, options, `run-${played}`);
  };
}

async function build(t: Teardown, reply: Reply, config: StageOptions['config'] = {}): Promise<Theatre> {
  const upstream = await startMockUpstream(t, reply);
  const { path: workspace, home } = makeWorkspace(t, {
    EndPoint: upstream.url,
    ApiKey: 'key-of-the-upstream',
    Model: 'mock-model',
    UpstreamRetries: 0,
    ...config,
  });
  writeFiles(workspace, before);
  const server = spawnServer(t, { path: workspace, home });
  const lock = await serving(server, workspace);
  return { workspace, home, server, upstream, url: lock.endpoints.appServerWebSocket ?? '' };
}

function play(t: Teardown, theatre: Theatre, options: StageOptions, name: string): Stage {
  const { now = after, limits = {}, extra = {} } = options;
  const { workspace, home, url } = theatre;
  const worktree = join(workspace, '.oratorio', 'worktrees', name);
  writeFiles(worktree, { ...now, ...extra });
  const log: string[] = [];
  const logger = createLogger({ name: 'test', level: 'debug', pretty: false, stream: { write: (l) => log.push(l) } });
  const settings = v.parse(BackendSettings, { AgentServer: { AppServerUrl: url } });
  const newAgent = () => {
    const agent = createReviewAgent({ settings: () => settings, logger, home, limits });
    t.teardown(() => agent.close());
    return agent;
  };
  const assignment = (more: AssignmentOptions = {}) =>
    assignmentOf(home, {
      now,
      worktreePath: worktree,
      ...more,
      more: { workspacePath: workspace, ...more.more },
    });
  return { ...theatre, worktree, log, assignment, newAgent, agent: newAgent() };
}

/** The messages of one request of the agent server to the model. */
export interface Message {
  readonly role: string;
  readonly content: string;
}
