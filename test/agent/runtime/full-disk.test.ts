/** A disk that refuses at a chosen moment of a turn. */
import t from 'tap';
import { MemoryStore, StorageError, type StoredTurn } from '../../../src/agent/index.ts';
import { rpcErrors, type Turn } from '../../../src/protocol/index.ts';
import { listening, says, service, talk, text } from '../helpers.ts';

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

t.test(
  'a turn whose end is not taken has failed: it is told once, read as such, and kept as soon as there is room',
  async (t) => {
    const store = new SmallStore();
    const { threads, bugs } = service(says('all of ', 'it'), { store });
    const { id } = threads.start({}).thread;
    store.fullAt = 'completed';
    const { turn, ear } = await talk(threads, id, 'hello');
    t.match(turn, failed);
    t.match(turn.items, [{ type: 'userMessage' }, { type: 'agentMessage', status: 'completed', text: 'all of it' }]);
    t.strictSame(
      ear.methods().filter((method) => /^turn\/(completed|failed|cancelled)$/.test(method)),
      ['turn/failed'],
    );
    const last = (): Turn | undefined => threads.read(id, { includeTurns: true }).turns?.at(-1);
    t.strictSame(last(), turn, 'what is read is what was told');
    t.throws(() => threads.startTurn(id, text('again'), listening().listener), {
      message: rpcErrors.storageFailed.message,
    });

    store.isFull = false;
    store.fullAt = undefined;
    t.match((await talk(threads, id, 'again')).turn, { status: 'completed' });
    t.strictSame(
      store.turns(id, { limit: 9 }).map(({ status }) => status),
      ['failed', 'completed'],
    );
    t.strictSame(store.turns(id, { limit: 9 })[0], turn, 'it is kept as it was told');
    t.strictSame(bugs, [], 'a full disk is no bug');
    await threads.close();
  },
);

t.test('what is not kept when the server ends is tried once more', async (t) => {
  const store = new SmallStore();
  const { threads } = service(says('x'), { store });
  const { id } = threads.start({}).thread;
  store.fullAt = 'completed';
  await talk(threads, id, 'hello');
  store.isFull = false;
  await threads.close();
  t.match(store.turns(id, { limit: 9 }), [failed]);
});
