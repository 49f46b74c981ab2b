/** The conversations of all workspaces, read from their databases: this works for stopped agent servers, too. */
import { statSync } from 'node:fs';
import { basename, join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import type { ListedThread, ThreadListRange } from '../agent/index.ts';
import { workspaceStateDirectory } from '../config/index.ts';
import { messageOf } from '../lib/index.ts';
import type { Logger } from '../log/index.ts';
import {
  type AppServerState,
  firstWords,
  type HubThread,
  type HubThreadList,
  stateWordOf,
  type ThreadWorkspace,
  type Turn,
} from '../protocol/index.ts';
import { chatPath } from './inbox/index.ts';
import { publicState } from './record.ts';
import type { Registry } from './registry.ts';
import type { Workspace } from './workspace.ts';

/** Time for all workspaces together; those that are not read by then say so. */
const deadlineMs = 5_000;
/** Longest wait of the Hub for another process that holds a database: the Hub answers no request during it. */
const busyMs = 10;
/** Threads of unchanged databases that are stored, of all workspaces. */
const maxStored = 5_000;
/** Two writes within the resolution of a file's time leave the same stamp. */
const racyMs = 200;
const nameChars = 200;

const serves: readonly AppServerState[] = ['running', 'unhealthy'];

export interface ThreadListsOptions {
  readonly home: string;
  readonly registry: Pick<Registry, 'workspaces'>;
  readonly logger: Logger;
  /** Milliseconds of a clock that never goes back; a test supplies its own. */
  readonly now?: () => number;
}

/** Content of the database of a workspace at one moment. */
interface Reading {
  readonly threads: readonly ListedThread[];
  readonly problem: string | null;
}

interface Stored {
  readonly stamp: string;
  readonly range: string;
  readonly threads: readonly ListedThread[];
}

/** Lists conversations. Equal requests that come together share one reading; unchanged lists are not read again. */
export class ThreadLists {
  readonly #options: ThreadListsOptions;
  /** The last reading of each workspace without a search, the latest last. */
  readonly #stored = new Map<Workspace, Stored>();
  readonly #underWay = new Map<string, Promise<HubThreadList>>();

  constructor(options: ThreadListsOptions) {
    this.#options = options;
  }

  /** `range.text` is searched in names, first requests and ids, and in the names of workspaces. */
  list(range: ThreadListRange): Promise<HubThreadList> {
    const key = JSON.stringify(range);
    const known = this.#underWay.get(key);
    if (known) return known;
    const reading = this.#list(range).finally(() => this.#underWay.delete(key));
    this.#underWay.set(key, reading);
    return reading;
  }

  async #list(range: ThreadListRange): Promise<HubThreadList> {
    const { registry, now = () => performance.now() } = this.#options;
    const until = now() + deadlineMs;
    const threads: HubThread[] = [];
    const unread = new Map<Workspace, string>();
    for (const workspace of registry.workspaces.values()) {
      const { threads: found, problem } =
        now() < until ? await this.#read(workspace, range) : { threads: [], problem: 'There was no time to read it.' };
      if (problem !== null) unread.set(workspace, problem);
      threads.push(...found.map((each) => hubThread(each, workspace)));
    }
    threads.sort(byActivity);
    const shown = threads.slice(0, range.limit);
    const named = new Set(shown.map(({ workspaceId }) => workspaceId));
    return {
      threads: shown,
      hasMore: threads.length > range.limit,
      workspaces: [...registry.workspaces.values()]
        .filter((workspace) => named.has(workspace.facts.id) || unread.has(workspace))
        .map((workspace) => threadWorkspace(workspace, unread.get(workspace) ?? null)),
    };
  }

  async #read(workspace: Workspace, range: ThreadListRange): Promise<Reading> {
    const { home, logger } = this.#options;
    const directory = workspaceStateDirectory(home, workspace.path);
    const stamp = stampOf(directory);
    if (stamp === null) return { threads: [], problem: null };
    // One more shows whether there are more.
    const wanted = { ...range, limit: range.limit + 1, text: isNamed(workspace, range.text) ? '' : range.text };
    const key = JSON.stringify(wanted);
    const known = this.#stored.get(workspace);
    if (known?.stamp === stamp.text && known.range === key) return { threads: known.threads, problem: null };
    // One workspace at a time: between two, other requests are answered.
    await setImmediate();
    try {
      const { listThreads } = await import('../agent/index.ts');
      const threads = listThreads(directory, wanted, busyMs);
      if (wanted.text === '' && !stamp.isRacy) this.#store(workspace, { stamp: stamp.text, range: key, threads });
      return { threads, problem: null };
    } catch (error) {
      logger.debug('the threads of a workspace could not be read', { workspacePath: workspace.path, error });
      const threads = known?.range === key ? known.threads : [];
      return { threads, problem: messageOf(error) };
    }
  }

  #store(workspace: Workspace, stored: Stored): void {
    this.#stored.delete(workspace);
    this.#stored.set(workspace, stored);
    let count = [...this.#stored.values()].reduce((sum, { threads }) => sum + threads.length, 0);
    for (const [each, { threads }] of this.#stored) {
      if (count <= maxStored) return;
      this.#stored.delete(each);
      count -= threads.length;
    }
  }
}

const isNamed = ({ path }: Workspace, text: string): boolean =>
  basename(path).toLowerCase().includes(text.toLowerCase());

/** Differs after each change of the database; null without one. */
function stampOf(directory: string): { readonly text: string; readonly isRacy: boolean } | null {
  const [database, log] = ['state.db', 'state.db-wal'].map((name) =>
    statSync(join(directory, name), { throwIfNoEntry: false }),
  );
  if (!database) return null;
  const stamps = [database, ...(log ? [log] : [])];
  return {
    text: stamps.map(({ ino, mtimeMs, size }) => `${ino} ${mtimeMs} ${size}`).join(' '),
    isRacy: stamps.some(({ mtimeMs }) => Date.now() - mtimeMs < racyMs),
  };
}

function byActivity(left: HubThread, right: HubThread): number {
  if (left.lastActiveAt !== right.lastActiveAt) return left.lastActiveAt < right.lastActiveAt ? 1 : -1;
  return left.threadId < right.threadId ? 1 : -1;
}

const isServed = (workspace: Workspace): boolean => serves.includes(publicState(workspace.snapshot()));

function hubThread({ thread, firstInput, lastTurn, work }: ListedThread, workspace: Workspace): HubThread {
  const { id } = workspace.facts;
  const name = (thread.displayName || firstWords(firstInput ?? '')).slice(0, nameChars);
  return {
    workspaceId: id,
    threadId: thread.id,
    name: name === '' ? null : name,
    status: thread.status,
    activity: isServed(workspace) ? activityOf(lastTurn?.status) : 'idle',
    channel: thread.identity?.channelName ?? null,
    createdAt: thread.createdAt,
    lastActiveAt: thread.lastActiveAt,
    lastTurn: lastTurn && { status: lastTurn.status, at: lastTurn.completedAt ?? lastTurn.startedAt },
    agent: thread.config?.agent ?? null,
    work,
    fork: forkOf(thread),
    actionUrl: chatPath(id, thread.id),
  };
}

function forkOf({ forkedFromThreadId, config }: ListedThread['thread']): HubThread['fork'] {
  const directory = config?.workspaceOverride;
  if (forkedFromThreadId === undefined || directory === undefined) return null;
  if (!config?.race) return { forkedFromThreadId, directory, race: null };
  const { check: _, ...race } = config.race;
  return { forkedFromThreadId, directory, race };
}

function activityOf(status: Turn['status'] | undefined): HubThread['activity'] {
  if (status === 'waitingApproval' || status === 'waitingQuota') return 'waiting';
  return status === 'running' ? 'running' : 'idle';
}

function threadWorkspace(workspace: Workspace, problem: string | null): ThreadWorkspace {
  const record = workspace.record();
  return {
    workspaceId: workspace.facts.id,
    workspacePath: workspace.path,
    displayName: record.displayName,
    state: record.state,
    stateWord: stateWordOf(record),
    problem,
  };
}
