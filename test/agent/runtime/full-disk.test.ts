/** A disk that refuses at a chosen moment of a turn. */
import t from 'tap';
import { MemoryStore, StorageError, type StoredTurn } from '../../../src/agent/index.ts';
import { rpcErrors, type Turn } from '../../../src/protocol/index.ts';
import { answers, call, listening, say, says, service, talk, text, tool } from '../helpers.ts';

/** Refuses everything while it is full, which it becomes when a turn of status `fullAt` is to be stored. */
class SmallStore extends MemoryStore {
  fullAt: StoredTurn['status'] | undefined;
  isFull = false;

  override transaction(work: () => void): void {
    if (this.isFull) throw new StorageError('diskFull', 'The disk is full');
    super.transaction(work);
  }

  override putTurn(turn: StoredTurn): void {
    if (turn.status === this.fullAt) this.isFull = true;
    if (this.isFull) throw new StorageError('diskFull', 'The disk is full');
    super.putTurn(turn);
  }

  override putThread(...given: Parameters<MemoryStore['putThread']>): void {
    if (this.isFull) throw new StorageError('diskFull', 'The disk is full');
    super.putThread(...given);
  }
}

const failed = { status: 'failed', error: { code: 'storageFailed', message: 'The disk is full' } };

t.test('a disk that is full at the start refuses the turn before any request', async (t) => {
  const store = new SmallStore();
  const provider = answers([say('never')]);
  const { runtime, bugs } = service(provider, { store });
  const { id } = runtime.threads.start({}).thread;
  const ear = listening();
  store.isFull = true;
  t.throws(() => runtime.turns.start(id, text('hello'), ear.listener), { name: 'AgentError', reason: 'storageFailed' });
  t.strictSame(ear.methods(), [], 'nothing that was not written is published');
  t.strictSame([provider.requests.length, runtime.turns.count, bugs], [0, 0, []]);
  await runtime.close();
});

t.test('a disk that becomes full while approval is awaited fails the turn and withdraws the request', async (t) => {
  const store = new SmallStore();
  const { runtime, bugs } = service(answers([call('c1', 'Ask')]), {
    store,
    tools: () => [tool({ name: 'Ask', needsApproval: true })],
  });
  const { id } = runtime.threads.start({}).thread;
  const ear = listening();
  const { turn, begin } = runtime.turns.start(id, text('hello'), ear.listener);
  begin();
  await ear.until('item/approval/request');
  store.isFull = true;
  runtime.turns.respond(runtime.turns.approvals(id)[0]?.requestId ?? '', 'accept');
  t.match((await ear.until('turn/failed')).params.turn, { ...failed, id: turn.id });
  t.strictSame([runtime.turns.approvals(), runtime.turns.count, bugs], [[], 0, []]);
  await runtime.close();
});

t.test(
  'a turn whose end cannot be written fails once, is read as failed, and is written with the next turn',
  async (t) => {
    const store = new SmallStore();
    const { runtime, bugs } = service(says('all of ', 'it'), { store });
    const { id } = runtime.threads.start({}).thread;
    store.fullAt = 'completed';
    const { turn, ear } = await talk(runtime, id, 'hello');
    t.match(turn, failed);
    t.match(turn.items, [{ type: 'userMessage' }, { type: 'agentMessage', status: 'completed', text: 'all of it' }]);
    t.strictSame(
      ear.methods().filter((method) => /^turn\/(completed|failed|cancelled)$/.test(method)),
      ['turn/failed'],
    );
    const last = (): Turn | undefined => runtime.threads.read(id, { includeTurns: true }).turns?.at(-1);
    t.strictSame(last(), turn, 'what is read is what was told');
    t.throws(() => runtime.turns.start(id, text('again'), listening().listener), {
      message: rpcErrors.storageFailed.message,
    });

    store.isFull = false;
    store.fullAt = undefined;
    t.match((await talk(runtime, id, 'again')).turn, { status: 'completed' });
    t.strictSame(
      store.turns(id, { limit: 9 }).map(({ status }) => status),
      ['failed', 'completed'],
    );
    t.strictSame(store.turns(id, { limit: 9 })[0], turn, 'it is kept as it was told');
    t.strictSame(bugs, [], 'a full disk is no bug');
    await runtime.close();
  },
);

t.test('an unwritten end is written again when the server closes', async (t) => {
  const store = new SmallStore();
  const { runtime } = service(says('x'), { store });
  const { id } = runtime.threads.start({}).thread;
  store.fullAt = 'completed';
  await talk(runtime, id, 'hello');
  store.isFull = false;
  await runtime.close();
  t.match(store.turns(id, { limit: 9 }), [failed]);
});
