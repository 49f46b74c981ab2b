import t, { type Test } from 'tap';
import { MemoryStore } from '../../../src/agent/store/index.ts';
import { StorageError, type ThreadStore } from '../../../src/agent/thread-store.ts';
import { command, message, opened, queued, said, thread, turn, turnId } from './helpers.ts';

const stores: Readonly<Record<string, (t: Test) => ThreadStore>> = {
  sqlite: (t) => opened(t).threads,
  memory: () => new MemoryStore(),
};

/** A store with one thread of `turns` completed turns, each with one message. */
function talk(store: ThreadStore, turns: number, threadId = 'a'): void {
  store.putThread(thread(threadId));
  for (let number = 1; number <= turns; number += 1) {
    store.putTurn(turn(threadId, number));
    store.putItem(threadId, message(number, number, `answer ${number}`));
  }
}

const idsOf = (all: readonly { readonly id: string }[]) => all.map(({ id }) => id);

for (const [name, open] of Object.entries(stores)) {
  t.test(name, async (t) => {
    t.test('threads are listed by activity, then newest first, and replaced by id', async (t) => {
      const store = open(t);
      store.putThread(thread('a', { lastActiveAt: '2026-01-01T00:00:01.000Z' }));
      store.putThread(thread('b', { lastActiveAt: '2026-01-01T00:00:03.000Z', identity: { channelName: 'cli' } }));
      store.putThread(thread('c', { lastActiveAt: '2026-01-01T00:00:01.000Z' }));
      t.strictSame(idsOf(store.threads()), ['b', 'c', 'a']);
      store.putThread(thread('a', { lastActiveAt: '2026-01-01T00:00:04.000Z', displayName: 'Ä "talk"\n' }));
      t.strictSame(idsOf(store.threads()), ['a', 'b', 'c']);
      t.strictSame(store.thread('a')?.displayName, 'Ä "talk"\n');
      t.strictSame(store.thread('b')?.identity, { channelName: 'cli' });
      t.equal(store.thread('nobody'), undefined);
    });

    t.test('the first request of a thread is its first words, without pictures', async (t) => {
      const store = open(t);
      store.putThread(thread('a'));
      t.equal(store.firstInput('a'), undefined);
      store.putTurn(turn('a', 1));
      store.putItem('a', message(1, 1, 'a note before'));
      const image = { type: 'image', url: 'data:,' } as const;
      store.putItem('a', { ...said(1, 2, ''), input: [image, { type: 'text', text: 'Ä first\nsecond' }] });
      store.putTurn(turn('a', 2));
      store.putItem('a', said(2, 3, 'later'));
      t.equal(store.firstInput('a'), 'Ä first\nsecond');
      store.putThread(thread('b'));
      store.putTurn(turn('b', 1));
      store.putItem('b', {
        ...said(1, 1, ''),
        input: [{ type: 'commandRef', name: 'fix', argsText: 'it', text: 'Long' }],
      });
      t.equal(store.firstInput('b'), '/fix it');
      t.equal(store.firstInput('c'), undefined);
    });

    t.test('a turn is replaced by id and keeps its position and items', async (t) => {
      const store = open(t);
      store.putThread(thread('a'));
      store.putTurn(turn('a', 1, { status: 'running' }));
      store.putItem('a', said(1, 1, 'hello'));
      store.putTurn(turn('a', 2));
      store.putTurn(turn('a', 1, { error: { code: 'x', message: 'y' }, status: 'failed' }));
      t.equal(store.turnCount('a'), 2);
      t.strictSame(store.turn('a', 'turn_001')?.status, 'failed');
      t.strictSame(store.turns('a', { limit: 9 }), [
        { ...turn('a', 1, { error: { code: 'x', message: 'y' }, status: 'failed' }), items: [said(1, 1, 'hello')] },
        { ...turn('a', 2), items: [] },
      ]);
      t.equal(store.turn('a', 'turn_003'), undefined);
      t.equal(store.turn('b', 'turn_001'), undefined);
    });

    t.test('a page has the newest turns, or those before a turn, oldest first', async (t) => {
      const store = open(t);
      talk(store, 7);
      talk(store, 2, 'b');
      t.strictSame(idsOf(store.turns('a', { limit: 3 })), [5, 6, 7].map(turnId));
      t.strictSame(idsOf(store.turns('a', { limit: 3, before: turnId(5) })), [2, 3, 4].map(turnId));
      t.strictSame(idsOf(store.turns('a', { limit: 3, before: turnId(2) })), [turnId(1)]);
      t.strictSame(store.turns('a', { limit: 3, before: turnId(1) }), []);
      t.strictSame(store.turns('a', { limit: 0 }), []);
      t.strictSame(
        store.turns('a', { limit: 3, before: 'turn_999' }),
        [],
        'before a turn that is not there is nothing',
      );
      t.strictSame(store.turns('nobody', { limit: 3 }), []);
      t.strictSame(store.turns('a', { limit: 1 })[0]?.items, [message(7, 7, 'answer 7')]);
    });

    t.test('turns for the model start after the given turn', async (t) => {
      const store = open(t);
      talk(store, 4);
      t.strictSame(idsOf(store.turnsSince('a', undefined)), [1, 2, 3, 4].map(turnId));
      t.strictSame(idsOf(store.turnsSince('a', { throughTurnId: turnId(2) })), [3, 4].map(turnId));
      t.strictSame(store.turnsSince('a', { throughTurnId: turnId(4) }), []);
      t.equal(
        store.turnsSince('a', { throughTurnId: 'turn_999' }).length,
        4,
        'a turn that is not there leaves nothing out',
      );
      t.strictSame(store.turnsSince('a', { throughTurnId: turnId(3) })[0]?.items, [message(4, 4, 'answer 4')]);
    });

    t.test('of a turn that a compaction covers in part, the later items are left', async (t) => {
      const store = open(t);
      talk(store, 4);
      const part = { throughTurnId: turnId(2), throughItemId: 'item_2' };
      t.strictSame(
        store.turnsSince('a', part).map(({ id, items }) => [id, items.length]),
        [
          [turnId(2), 0],
          [turnId(3), 1],
          [turnId(4), 1],
        ],
      );
    });

    t.test('the state of an answer is found by its last item, and goes with it', async (t) => {
      const store = open(t);
      talk(store, 4);
      const state = { owner: 'openai/m', data: [{ type: 'reasoning', text: '', providerOptions: { a: { b: 'c' } } }] };
      store.putAnswerState('a', 'item_2', { owner: 'openai/m', data: [] });
      store.putAnswerState('a', 'item_2', state);
      store.putAnswerState('a', 'item_4', state);
      store.putAnswerState('a', 'item_999', state);
      t.strictSame(
        [...store.answerStates('a', undefined)],
        [
          ['item_2', state],
          ['item_4', state],
        ],
      );
      t.notMatch(JSON.stringify(store.turns('a', { limit: 9 })), /providerOptions/, 'clients are not shown it');
      store.deleteLastTurns('a', 1);
      t.strictSame([...store.answerStates('a', undefined).keys()], ['item_2']);
      store.deleteAnswerStates('b');
      t.equal(store.answerStates('a', undefined).size, 1);
      store.deleteAnswerStates('a');
      t.equal(store.answerStates('a', undefined).size, 0);
    });

    t.test('the cost of a thread is that of its ended turns', async (t) => {
      const store = open(t);
      talk(store, 2);
      const cost = (id: string, status: 'completed' | 'running', costUsd?: number) => {
        const turn = store.turn('a', id);
        if (!turn) throw new Error(`no ${id}`);
        const tokens = { inputTokens: 1, outputTokens: 1, totalTokens: 2 };
        store.putTurn({ ...turn, status, tokenUsage: { ...tokens, ...(costUsd !== undefined && { costUsd }) } });
      };
      t.equal(store.threadCost('a'), 0);
      cost(turnId(1), 'completed', 0.25);
      cost(turnId(2), 'running', 0.5);
      t.equal(store.threadCost('a'), 0.25);
      cost(turnId(2), 'completed');
      t.equal(store.threadCost('a'), 0.25, 'an unknown cost adds nothing');
    });

    t.test('items keep their order, also when replaced', async (t) => {
      const store = open(t);
      store.putThread(thread('a'));
      store.putTurn(turn('a', 1));
      store.putItem('a', said(1, 1, 'hello'));
      store.putItem('a', message(1, 2, '', { status: 'started' }));
      store.putItem('a', command(1, 3, ''));
      store.putItem('a', message(1, 2, 'done'));
      t.strictSame(store.turns('a', { limit: 1 })[0]?.items, [
        said(1, 1, 'hello'),
        message(1, 2, 'done'),
        command(1, 3, ''),
      ]);
    });

    t.test('a growing text is read with all pieces, and replaced when complete', async (t) => {
      const store = open(t);
      store.putThread(thread('a'));
      store.putTurn(turn('a', 1, { status: 'running' }));
      store.putItem('a', message(1, 1, 'So: ', { status: 'streaming' }));
      store.putItem('a', command(1, 2, ''));
      const pieces = ['one', ', ', 'tw', 'o', '\0', '"\\', '', '\ud83d', '\ude00'];
      for (const piece of pieces) store.appendItemText('a', 'item_1', piece);
      store.appendItemText('a', 'item_2', 'line 1\n');
      store.appendItemText('a', 'item_2', 'line 2\n');
      t.strictSame(store.unfinishedTurns()[0]?.items, [
        message(1, 1, 'So: one, two\0"\\😀', { status: 'streaming' }),
        command(1, 2, 'line 1\nline 2\n'),
      ]);
      store.putItem('a', message(1, 1, 'So: one', { status: 'streaming' }));
      store.appendItemText('a', 'item_1', '!');
      t.match(store.turns('a', { limit: 1 })[0]?.items[0], { text: 'So: one!' });
    });

    if (name === 'sqlite') {
      t.test('lone surrogates that an earlier version stored are repaired when they are read', async (t) => {
        const store = open(t);
        store.putThread(thread('a', { displayName: 'a \ud83d' }));
        store.putTurn(turn('a', 1, { status: 'running' }));
        store.putItem('a', message(1, 1, 'b \ude00 \ud83d', { status: 'streaming' }));
        store.appendItemText('a', 'item_1', 'c \ud83d');
        t.equal(store.thread('a')?.displayName, 'a \ufffd');
        t.match(store.turns('a', { limit: 1 })[0]?.items[0], { text: 'b \ufffd \ufffdc \ufffd' });
      });
    }

    t.test('numbers continue after a rollback and for any order of ids', async (t) => {
      const store = open(t);
      t.equal(store.nextTurnNumber('a'), 1);
      t.equal(store.nextItemNumber('a'), 1);
      talk(store, 12);
      t.equal(store.nextTurnNumber('a'), 13);
      t.equal(store.nextItemNumber('a'), 13);
      store.deleteLastTurns('a', 5);
      t.equal(store.turnCount('a'), 7);
      t.strictSame(idsOf(store.turns('a', { limit: 1 })), [turnId(7)]);
      t.equal(store.nextTurnNumber('a'), 13);
      t.equal(store.nextItemNumber('a'), 13);
      store.putTurn(turn('a', 20));
      store.putTurn(turn('a', 14));
      store.putTurn({ ...turn('a', 1), id: 'imported' });
      t.equal(store.nextTurnNumber('a'), 21);
      store.putThread(thread('a', { displayName: 'again' }));
      t.equal(store.nextTurnNumber('a'), 21, 'the thread may be put meanwhile');
      store.deleteLastTurns('a', 100);
      t.equal(store.turnCount('a'), 0);
      t.equal(store.nextTurnNumber('a'), 21);
      store.deleteLastTurns('a', 0);
      store.deleteLastTurns('nobody', 1);
    });

    t.test('deleting a thread deletes all its data; a new thread with its id starts empty', async (t) => {
      const store = open(t);
      talk(store, 3);
      talk(store, 1, 'b');
      store.putQueued('a', queued('q1'));
      store.putGrant('a', 'shell:make');
      store.putCompaction('a', { throughTurnId: turnId(2), summary: 'so far', at: '' });
      store.deleteThread('a');
      store.deleteThread('a');
      t.strictSame(idsOf(store.threads()), ['b']);
      store.putThread(thread('a'));
      t.equal(store.nextTurnNumber('a'), 1);
      t.equal(store.turnCount('a'), 0);
      t.strictSame(store.queue('a'), []);
      t.notOk(store.hasGrant('a', 'shell:make'));
      t.equal(store.compaction('a'), undefined);
      t.equal(store.turnCount('b'), 1);
    });

    t.test('the queue keeps its order; a taken input is removed', async (t) => {
      const store = open(t);
      store.putThread(thread('a'));
      store.putThread(thread('b'));
      for (const id of ['q1', 'q2', 'q3']) store.putQueued('a', queued(id));
      store.putQueued('b', queued('q1', 'of another thread'));
      store.putQueued('a', queued('q1', 'other words'));
      store.deleteQueued('a', 'q2');
      store.deleteQueued('a', 'nothing');
      store.deleteQueued('nobody', 'q1');
      t.strictSame(store.queue('a'), [queued('q1', 'other words'), queued('q3')]);
      t.strictSame(store.queue('b'), [queued('q1', 'of another thread')]);
      t.strictSame(store.queue('nobody'), []);
    });

    t.test('a grant holds for its thread or the workspace, and for the exact scope', async (t) => {
      const store = open(t);
      store.putThread(thread('a'));
      store.putThread(thread('b'));
      store.putGrant('a', 'shell:npm test');
      store.putGrant('a', 'shell:npm test');
      store.putGrant(null, 'file:write:/w/x');
      store.putGrant(null, 'file:write:/w/x');
      t.ok(store.hasGrant('a', 'shell:npm test'));
      t.notOk(store.hasGrant('b', 'shell:npm test'));
      t.notOk(store.hasGrant('a', 'shell:npm test '));
      t.notOk(store.hasGrant('a', 'SHELL:npm test'));
      for (const id of ['a', 'b', 'made later']) t.ok(store.hasGrant(id, 'file:write:/w/x'));
    });

    t.test('the latest summary is used, and deleted with its turns', async (t) => {
      const store = open(t);
      talk(store, 5);
      t.equal(store.compaction('a'), undefined);
      const first = { throughTurnId: turnId(2), summary: 'two turns', at: 'then' };
      const second = { throughTurnId: turnId(4), summary: 'four turns', at: 'now' };
      store.putCompaction('a', first);
      store.putCompaction('a', second);
      t.strictSame(store.compaction('a'), second);
      store.deleteLastTurns('a', 1);
      t.strictSame(store.compaction('a'), second);
      store.deleteLastTurns('a', 1);
      t.strictSame(store.compaction('a'), first, 'a summary of what was taken back is none');
    });

    t.test('unfinished turns are found with their items', async (t) => {
      const store = open(t);
      talk(store, 2);
      talk(store, 1, 'b');
      store.putTurn(turn('a', 3, { status: 'running' }));
      store.putItem('a', said(3, 9, 'go on'));
      store.putTurn(turn('b', 2, { status: 'waitingApproval' }));
      t.strictSame(store.unfinishedTurns(), [
        { ...turn('a', 3, { status: 'running' }), items: [said(3, 9, 'go on')] },
        { ...turn('b', 2, { status: 'waitingApproval' }), items: [] },
      ]);
      store.putTurn(turn('a', 3, { status: 'cancelled' }));
      t.strictSame(idsOf(store.unfinishedTurns()), ['turn_002']);
    });

    t.test('a write without its thread, turn or item is refused and changes nothing', async (t) => {
      const store = open(t);
      talk(store, 2);
      const refused = { name: 'StorageError', code: 'failed' } as const;
      t.throws(() => store.putTurn(turn('nobody', 1)), refused);
      t.throws(() => store.putItem('nobody', message(1, 1, '')), refused);
      t.throws(() => store.putItem('a', message(3, 3, '')), { ...refused, message: /turn_003/ });
      t.throws(() => store.putItem('a', message(1, 2, 'in another turn')), { ...refused, message: /item_2/ });
      t.throws(() => store.appendItemText('a', 'item_9', 'x'), { ...refused, message: /item_9/ });
      t.throws(() => store.appendItemText('nobody', 'item_1', 'x'), refused);
      store.putItem('a', said(2, 3, 'words'));
      t.throws(() => store.appendItemText('a', 'item_3', 'x'), refused, 'nor does an item without a text grow');
      t.throws(() => store.putQueued('nobody', queued('q')), refused);
      t.throws(() => store.putGrant('nobody', 'shell:make'), refused);
      t.throws(() => store.putCompaction('a', { throughTurnId: 'turn_003', summary: '', at: '' }), refused);
      t.strictSame(
        store.turns('a', { limit: 9 }).flatMap(({ items }) => items),
        [message(1, 1, 'answer 1'), message(2, 2, 'answer 2'), said(2, 3, 'words')],
      );
    });

    t.test('a throwing transaction changes nothing, and the store stays usable', async (t) => {
      const store = open(t);
      talk(store, 2);
      store.putQueued('a', queued('q1'));
      store.putItem('a', message(2, 3, 'so', { status: 'streaming' }));
      const before = everything(store);
      const failure = new Error('no');
      const attempt = () =>
        store.transaction(() => {
          store.putThread(thread('b'));
          store.putTurn(turn('b', 1));
          store.putThread(thread('a', { displayName: 'other' }));
          store.putTurn(turn('a', 3));
          store.putItem('a', message(3, 4, 'x'));
          store.appendItemText('a', 'item_3', ' far');
          store.deleteQueued('a', 'q1');
          store.putQueued('a', queued('q2'));
          store.putGrant('a', 'g');
          store.putGrant(null, 'g');
          store.putCompaction('a', { throughTurnId: turnId(1), summary: '', at: '' });
          store.deleteLastTurns('a', 2);
          store.deleteThread('b');
          throw failure;
        });
      t.throws(attempt, failure);
      t.throws(attempt, failure, 'also the second time');
      t.strictSame(everything(store), before);
      t.notOk(store.hasGrant('a', 'g'));
      store.transaction(() => store.deleteThread('a'));
      t.strictSame(store.threads(), []);
    });

    t.test('a transaction reads its own writes and stores all of them', async (t) => {
      const store = open(t);
      store.transaction(() => {
        talk(store, 2);
        t.equal(store.turnCount('a'), 2);
        t.throws(() => store.putTurn(turn('nobody', 1)), StorageError, 'what is refused inside may be caught');
        store.appendItemText('a', 'item_2', '!');
      });
      t.match(store.turns('a', { limit: 1 })[0]?.items[0], { text: 'answer 2!' });
    });

    t.test('a nested transaction is refused', async (t) => {
      const store = open(t);
      t.throws(() => store.transaction(() => store.transaction(() => {})), { message: /inside of another/ });
      store.transaction(() => store.putThread(thread('a')));
      t.equal(store.threads().length, 1);
    });

    t.test('returned objects do not change later', async (t) => {
      const store = open(t);
      talk(store, 1);
      store.putItem('a', message(1, 2, 'so', { status: 'streaming' }));
      const turns = store.turns('a', { limit: 1 });
      const threads = store.threads();
      store.appendItemText('a', 'item_2', ' far');
      store.putItem('a', message(1, 3, 'more'));
      store.putThread(thread('b'));
      t.strictSame(turns[0]?.items, [message(1, 1, 'answer 1'), message(1, 2, 'so', { status: 'streaming' })]);
      t.equal(threads.length, 1);
    });
  });
}

function everything(store: ThreadStore) {
  return store.threads().map((each) => ({
    each,
    turns: store.turns(each.id, { limit: 1_000 }),
    queue: store.queue(each.id),
    compaction: store.compaction(each.id),
    next: [store.nextTurnNumber(each.id), store.nextItemNumber(each.id)],
  }));
}
