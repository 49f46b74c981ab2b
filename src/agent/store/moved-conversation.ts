import { closeSync, openSync, writeSync } from 'node:fs';
import { setImmediate } from 'node:timers/promises';
import * as v from 'valibot';
import { isDeeperThan, SequentialFile } from '../../lib/index.ts';
import { Item, isRunningStatus, ThreadConfig, ThreadSummary, Turn } from '../../protocol/index.ts';
import type { StoredThread, ThreadStore } from '../thread-store.ts';

/** Longest line: one item with its longest text. */
const lineBytes = 67_108_864;
/** Levels of a line: a genuine one has at most those of a tool's answer, and a few around it. */
const lineDepth = 500;

/** Next step after an invalid conversation of a genuine machine. */
const sameVersion = 'Install the same version of Oratorio on both machines, then move it again';

/** Settings that move: all others are rights, or depend on the machine. */
const MovedConfig = v.pick(ThreadConfig, [
  ...(['model', 'effort', 'maxOutputTokens', 'mode', 'agentInstructions', 'enabledTools', 'readOnly'] as const),
]);
const MovedThread = v.object({
  ...v.omit(ThreadSummary, ['runtime', 'firstInput', 'move', 'parentThreadId']).entries,
  config: v.optional(MovedConfig),
  status: v.literal('active'),
});

const turnId = v.pipe(v.string(), v.regex(/^turn_\d{3,9}$/));
const Line = v.variant('kind', [
  v.object({ kind: v.literal('thread'), value: MovedThread }),
  v.object({ kind: v.literal('turn'), value: v.object({ ...v.omit(Turn, ['items']).entries, id: turnId }) }),
  v.object({ kind: v.literal('item'), value: Item }),
  v.object({
    kind: v.literal('state'),
    value: v.object({ itemId: v.string(), owner: v.pipe(v.string(), v.maxLength(1_000)), data: v.unknown() }),
  }),
  v.object({
    kind: v.literal('compaction'),
    value: v.object({
      throughTurnId: turnId,
      throughItemId: v.optional(v.string()),
      summary: v.string(),
      requests: v.optional(v.array(v.string())),
      at: v.string(),
    }),
  }),
]);
type Line = v.InferOutput<typeof Line>;

/** Writes a conversation at rest to a file, one row a line. Rights, queued inputs and sessions of agents are left out. */
export async function writeConversation(store: ThreadStore, thread: StoredThread, file: string): Promise<void> {
  const { id } = thread;
  const states = store.answerStates(id, undefined);
  const compaction = store.compaction(id);
  const fd = openSync(file, 'w', 0o600);
  const write = (kind: Line['kind'], value: unknown): void => {
    const bytes = Buffer.from(`${JSON.stringify({ kind, value })}\n`);
    for (let done = 0; done < bytes.length; ) done += writeSync(fd, bytes, done);
  };
  try {
    write('thread', thread);
    const ids = turnIdsOf(store, id);
    for (const [at, each] of ids.entries()) {
      await setImmediate();
      const [turn] = store.turns(id, { limit: 1, before: ids[at + 1] });
      if (turn?.id !== each) throw new Error(`the conversation ${id} changed during the export. Move it again`);
      const { items, ...rest } = turn;
      write('turn', rest);
      for (const item of items) {
        write('item', item);
        const state = states.get(item.id);
        if (state) write('state', { itemId: item.id, ...state });
      }
    }
    if (compaction) write('compaction', compaction);
  } finally {
    closeSync(fd);
  }
}

function turnIdsOf(store: ThreadStore, threadId: string): string[] {
  const ids: string[] = [];
  for (let number = 1; number < store.nextTurnNumber(threadId); number += 1) {
    const id = `turn_${String(number).padStart(3, '0')}`;
    if (store.turn(threadId, id)) ids.push(id);
  }
  return ids;
}

/** Lines of a file that `writeConversation` made on another machine. @throws Error for anything else */
function* linesOf(file: string, threadId: string): Generator<Line> {
  const rows = new SequentialFile(file, lineBytes);
  const turns = new Set<string>();
  const items = new Set<string>();
  let turn: string | undefined;
  let number = 0;
  try {
    for (let text = rows.line(); text !== undefined; text = rows.line()) {
      number += 1;
      const parsed = v.safeParse(v.pipe(v.string(), v.parseJson(), Line), text);
      const fail = () => new Error(`line ${number} of the conversation is invalid. ${sameVersion}`);
      if (!parsed.success || isDeeperThan(parsed.output, lineDepth)) throw fail();
      const { kind, value } = parsed.output;
      if ((kind === 'thread') !== (number === 1)) throw fail();
      if (kind === 'thread' && value.id !== threadId) throw fail();
      if (kind === 'turn') {
        if (value.threadId !== threadId || turns.has(value.id) || isRunningStatus(value.status)) throw fail();
        if (turn !== undefined && value.id <= turn && value.id.length <= turn.length) throw fail();
        turn = value.id;
        turns.add(turn);
      }
      if (kind === 'item') {
        if (value.turnId !== turn || value.status !== 'completed' || items.has(value.id)) throw fail();
        items.add(value.id);
      }
      if (kind === 'state' && !items.has(value.itemId)) throw fail();
      if (kind === 'compaction' && !turns.has(value.throughTurnId)) throw fail();
      yield parsed.output;
    }
    if (number === 0) throw new Error(`the conversation is empty. ${sameVersion}`);
  } finally {
    rows.close();
  }
}

/** Checks a file before anything is changed. @throws Error */
export async function checkConversation(file: string, threadId: string): Promise<void> {
  let lines = 0;
  for (const _line of linesOf(file, threadId)) {
    lines += 1;
    if (lines % 100 === 0) await setImmediate();
  }
}

/** Settings after a move: restrictions of either place hold, rights are those of this place. */
function configOf(here: ThreadConfig = {}, moved: v.InferOutput<typeof MovedConfig> = {}): ThreadConfig {
  const enabledTools = here.enabledTools ?? moved.enabledTools;
  return {
    ...here,
    ...moved,
    ...(enabledTools && { enabledTools }),
    ...((here.readOnly || moved.readOnly) && { readOnly: true }),
  };
}

/**
 * Stores the conversation of a file in the transaction of the caller. Replaces the turns of an earlier stay; rights that the user
 * gave here stay.
 *
 * @throws Error, StorageError
 */
export function storeConversation(
  store: ThreadStore,
  file: string,
  thread: Pick<StoredThread, 'id' | 'workspacePath' | 'move'>,
): void {
  const { id } = thread;
  const before = store.thread(id);
  if (before) store.deleteTurns(id, turnIdsOf(store, id));
  for (const { kind, value } of linesOf(file, id)) {
    if (kind === 'thread') {
      store.putThread({ ...value, ...thread, config: configOf(before?.config, value.config) });
    } else if (kind === 'turn') store.putTurn(value);
    else if (kind === 'item') store.putItem(id, value);
    else if (kind === 'state') store.putAnswerState(id, value.itemId, { owner: value.owner, data: value.data });
    else {
      const { requests, ...rest } = value;
      store.putCompaction(id, { ...rest, ...(requests && { requests }) });
    }
  }
}
