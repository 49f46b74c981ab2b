import { deepStrictEqual } from 'node:assert';
import { mkdtempSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import t from 'tap';
import { MemoryStore, openStore } from '../../../src/agent/store/index.ts';
import { StorageError, type ThreadStore } from '../../../src/agent/thread-store.ts';
import { command, message, queued, said, temporaryDirectory, thread, turn, turnId } from './helpers.ts';

/** One change, made to either store. */
type Change = (store: ThreadStore) => void;
type Step = Change | 'reopen';

const threadIds = ['a', 'b'];
const scopes = ['shell:make', 'shell:Make', 'file:ü'];
const someThread = fc.constantFrom(...threadIds);
const number = fc.integer({ min: 1, max: 3 });
/** Any text as the runtime stores it: without half characters, which reading would repair. */
const anyText = fc
  .string({
    unit: fc.integer({ min: 0, max: 0xffff }).map((code) => String.fromCharCode(code)),
    maxLength: 8,
  })
  .map((text) => text.toWellFormed());
const anyTime = fc.integer({ min: 0, max: 3 }).map((second) => `2026-01-01T00:00:0${second}.000Z`);
const anyStatus = fc.constantFrom('running' as const, 'waitingApproval' as const, 'completed' as const);

/** The newest turn and the newest item, to which a running turn writes. */
const newestTurn = (store: ThreadStore, id: string): number => store.nextTurnNumber(id) - 1;
const newestItem = (store: ThreadStore, id: string): number => store.nextItemNumber(id) - 1;

const addition: fc.Arbitrary<Change> = fc.oneof(
  fc.tuple(someThread, anyTime, anyText).map(
    ([id, lastActiveAt, displayName]): Change =>
      (store) =>
        store.putThread(thread(id, { lastActiveAt, displayName })),
  ),
  fc.tuple(someThread, number, anyStatus).map(
    ([id, count, status]): Change =>
      (store) =>
        store.putTurn(turn(id, count, { status })),
  ),
  fc.tuple(someThread, anyStatus).map(
    ([id, status]): Change =>
      (store) =>
        store.putTurn(turn(id, store.nextTurnNumber(id), { status })),
  ),
  fc.tuple(someThread, number, number, anyText).map(
    ([id, ofTurn, item, text]): Change =>
      (store) =>
        store.putItem(id, message(ofTurn, item, text)),
  ),
  fc.tuple(someThread, number, anyText).map(
    ([id, ofTurn, text]): Change =>
      (store) =>
        store.putItem(id, command(ofTurn, store.nextItemNumber(id), text)),
  ),
  fc.tuple(someThread, number, number, anyText).map(
    ([id, ofTurn, item, text]): Change =>
      (store) =>
        store.putItem(id, said(ofTurn, item, text)),
  ),
  fc.tuple(someThread, number, anyText).map(
    ([id, item, text]): Change =>
      (store) =>
        store.appendItemText(id, `item_${item}`, text),
  ),
  fc.tuple(someThread, anyText).map(
    ([id, text]): Change =>
      (store) =>
        store.putItem(id, message(newestTurn(store, id), newestItem(store, id), text)),
  ),
  fc.tuple(someThread, anyText).map(
    ([id, text]): Change =>
      (store) =>
        store.appendItemText(id, `item_${newestItem(store, id)}`, text),
  ),
  fc.tuple(someThread, number, anyText).map(
    ([id, count, text]): Change =>
      (store) =>
        store.putQueued(id, queued(`q${count}`, text)),
  ),
  fc.tuple(fc.option(someThread), fc.constantFrom(...scopes)).map(
    ([id, scope]): Change =>
      (store) =>
        store.putGrant(id, scope),
  ),
  fc.tuple(someThread, number, anyText).map(
    ([id, count, summary]): Change =>
      (store) =>
        store.putCompaction(id, { throughTurnId: turnId(count), summary, at: '' }),
  ),
);

const removal: fc.Arbitrary<Change> = fc.oneof(
  fc.tuple(someThread, fc.integer({ min: 0, max: 3 })).map(
    ([id, count]): Change =>
      (store) =>
        store.deleteLastTurns(id, count),
  ),
  fc.tuple(someThread, number).map(
    ([id, count]): Change =>
      (store) =>
        store.deleteQueued(id, `q${count}`),
  ),
  someThread.map(
    (id): Change =>
      (store) =>
        store.deleteThread(id),
  ),
);

const change = fc.oneof({ weight: 6, arbitrary: addition }, { weight: 1, arbitrary: removal });

const transaction: fc.Arbitrary<Change> = fc.tuple(fc.array(change, { maxLength: 6 }), fc.boolean()).map(
  ([changes, fails]): Change =>
    (store) =>
      store.transaction(() => {
        for (const each of changes) each(store);
        if (fails) throw new StorageError('failed', 'at the end');
      }),
);

const steps: fc.Arbitrary<Step[]> = fc.array(
  fc.oneof(
    { weight: 12, arbitrary: change as fc.Arbitrary<Step> },
    { weight: 3, arbitrary: transaction },
    { weight: 1, arbitrary: fc.constant<Step>('reopen') },
  ),
  { maxLength: 40, size: 'max' },
);

/** Two threads in the middle of a turn. */
function begin(store: ThreadStore): void {
  for (const id of threadIds) {
    store.putThread(thread(id));
    store.putTurn(turn(id, 1, { status: 'running' }));
    store.putItem(id, message(1, 1, ''));
  }
}

/** Outcome of a step, in words that both stores share. */
function outcomeOf(store: ThreadStore, step: Change): string {
  try {
    step(store);
    return 'done';
  } catch (error) {
    if (!(error instanceof StorageError)) throw error;
    return `${error.code}: ${error.message}`;
  }
}

function everything(store: ThreadStore) {
  const known = threadIds.map((id) => ({
    thread: store.thread(id),
    first: store.firstInput(id),
    count: store.turnCount(id),
    next: [store.nextTurnNumber(id), store.nextItemNumber(id)],
    newest: store.turns(id, { limit: 2 }),
    before: store.turns(id, { limit: 2, before: turnId(2) }),
    since: store.turnsSince(id, { throughTurnId: turnId(1) }),
    part: store.turnsSince(id, { throughTurnId: turnId(1), throughItemId: 'item_2' }),
    states: [...store.answerStates(id, undefined)],
    cost: store.threadCost(id),
    all: store.turnsSince(id, undefined),
    queue: store.queue(id),
    grants: scopes.map((scope) => store.hasGrant(id, scope)),
    compaction: store.compaction(id),
  }));
  return { known, threads: store.threads(), unfinished: store.unfinishedTurns() };
}

t.test(
  'after any operations database and memory store agree, also after reopening',
  { timeout: 200_000 },
  async (t) => {
    const parent = temporaryDirectory(t);
    fc.assert(
      fc.property(steps, (sequence) => {
        const directory = mkdtempSync(join(parent, 'case-'));
        const memory = new MemoryStore();
        let store = openStore(directory);
        try {
          for (const each of [store.threads, memory]) begin(each);
          for (const step of sequence) {
            if (step === 'reopen') {
              store.close();
              store = openStore(directory);
            } else {
              deepStrictEqual(outcomeOf(store.threads, step), outcomeOf(memory, step));
            }
          }
          const kept = everything(store.threads);
          deepStrictEqual(kept, everything(memory));
          store.close();
          store = openStore(directory);
          deepStrictEqual(everything(store.threads), kept);
          return true;
        } finally {
          store.close();
        }
      }),
      // The input of a conversation may begin with a NUL.
      { numRuns: 80, examples: [[[(store: ThreadStore) => store.putItem('a', said(1, 1, 'a\0b'))]]] },
    );
    t.pass('in all cases');
  },
);
