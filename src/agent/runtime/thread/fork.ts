import { plainText } from '../../../lib/index.ts';
import { isRunningStatus, ownAgent, type RaceAttempt, type ThreadConfig, threadName } from '../../../protocol/index.ts';
import type { AgentProblem } from '../../delegate.ts';
import { AgentError } from '../../errors.ts';
import type { StoredThread, ThreadStore } from '../../thread-store.ts';
import { timestamp } from '../clock.ts';
import type { Feed } from '../feed.ts';
import type { ThreadRegistry } from './registry.ts';

/** Characters of an unknown name in an error. */
const shownNameChars = 100;

export interface ForkOptions {
  readonly store: ThreadStore;
  readonly original: StoredThread;
  readonly newId: string;
  /** Last turn that the fork has; undefined: the last that has ended. */
  readonly atTurnId: string | undefined;
  readonly displayName: string | undefined;
  readonly config: ThreadConfig | undefined;
}

/**
 * Copies a conversation up to a turn into a thread of its own, in one commit. Rights of the session, queued inputs and processes stay
 * with the original.
 *
 * @returns the new thread and the last turn of it, undefined: it has none
 * @throws AgentError turnNotFound
 */
export function forkThread(options: ForkOptions): {
  readonly thread: StoredThread;
  readonly lastTurnId: string | undefined;
} {
  const { store, original, newId, atTurnId, displayName, config } = options;
  const all = store.turns(original.id, { limit: store.turnCount(original.id) });
  const end = atTurnId === undefined ? all.length - 1 : all.findIndex(({ id }) => id === atTurnId);
  if (atTurnId !== undefined && end === -1)
    throw new AgentError('turnNotFound', { threadId: original.id, turnId: atTurnId });
  const turns = all.slice(0, end + 1).filter(({ status }) => !isRunningStatus(status));
  const now = timestamp();
  const { model: itsModel, move: _, ...rest } = original;
  const model = config ? config.model : itsModel;
  const thread: StoredThread = {
    ...rest,
    ...(config && { config }),
    ...(model !== undefined && { model }),
    id: newId,
    displayName: displayName ?? `fork of ${nameOf(store, original)}`,
    forkedFromThreadId: original.id,
    createdAt: now,
    lastActiveAt: now,
  };
  const states = store.answerStates(original.id, undefined);
  const briefing = store.briefing(original.id);
  const compaction = store.compaction(original.id);
  store.transaction(() => {
    store.putThread(thread);
    for (const { items, ...turn } of turns) {
      store.putTurn({ ...turn, threadId: newId });
      for (const item of items) {
        store.putItem(newId, item);
        const state = states.get(item.id);
        if (state) store.putAnswerState(newId, item.id, state);
      }
    }
    if (briefing) store.putBriefing(newId, briefing);
    if (compaction && turns.some(({ id }) => id === compaction.throughTurnId)) store.putCompaction(newId, compaction);
  });
  return { thread, lastTurnId: turns.at(-1)?.id };
}

/** Name of a stored conversation for people. */
export const nameOf = (store: ThreadStore, { id, displayName }: StoredThread): string =>
  threadName({ displayName, firstInput: store.firstInput(id) });

/** Settings of a fork, without the race attempt of the original. Another agent gets no model and no mode of the original. */
export function inheritedBy(
  { race: _, ...config }: ThreadConfig,
  agent: string | undefined = config.agent,
): ThreadConfig {
  if (agent === config.agent) return config;
  const { model: _model, agentMode: _mode, agentOptions: _options, ...rest } = config;
  return { ...rest, ...(agent !== undefined && { agent }) };
}

const problemWords: Readonly<Record<AgentProblem, string>> = {
  unknown: 'it is no preset, and not the one of the configuration; see: oratorio agents',
  notInstalled: 'its program is not installed; see: oratorio agents',
  restricted: 'trust this workspace first: oratorio trust',
};

/** @throws AgentError agentUnavailable */
export function requireAgent(agent: string, problemOf: ((name: string) => AgentProblem | undefined) | undefined): void {
  if (agent === ownAgent) return;
  const reason = problemOf ? problemOf(agent) : 'restricted';
  if (reason === undefined) return;
  const name = plainText(agent).slice(0, shownNameChars);
  throw new AgentError('agentUnavailable', { agent: name, reason }, `${name}: ${problemWords[reason]}`);
}

/** Saves the outcome of an attempt of a race, and notifies every client. */
export function recordRace(feed: Feed, registry: ThreadRegistry, threadId: string, race: RaceAttempt): void {
  registry.update(threadId, { config: { ...registry.get(threadId).config, race } });
  if (!registry.isUnlisted(threadId)) feed.broadcast({ method: 'thread/raceUpdated', params: { threadId, race } });
}

/** Notes that the changes of an attempt are in the workspace: this restore takes them back. */
export function recordApplied(feed: Feed, registry: ThreadRegistry, threadId: string, restoreId: string): void {
  const race = registry.get(threadId).config?.race;
  if (race) recordRace(feed, registry, threadId, { ...race, restoreId });
}

/** Records that this restore of a thread was undone: its attempt no longer counts as applied. */
export function recordTakenBack(feed: Feed, registry: ThreadRegistry, threadId: string, restoreId: string): void {
  for (const { id, forkedFromThreadId, config } of registry.storeOf(threadId).threads()) {
    const race = config?.race;
    if (forkedFromThreadId !== threadId || race?.restoreId !== restoreId) continue;
    const { restoreId: _, ...rest } = race;
    recordRace(feed, registry, id, rest);
  }
}
