/** Turn row and prompt are one commit, which precedes the answer to `turn/start`. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { openStore, type Runtime, StorageError } from '../../../src/agent/index.ts';
import { listening, neverEnds, says, service, settings } from '../helpers.ts';

const prompt = [{ type: 'text' as const, text: 'do not lose this' }];

function stored(t: Test) {
  const directory = mkdtempSync(join(tmpdir(), 'oratorio-commit-'));
  const { threads: store, chatRequests, close } = openStore(directory);
  t.teardown(() => {
    close();
    rmSync(directory, { recursive: true, force: true });
  });
  return { store, chatRequests };
}

const started = (runtime: Runtime) => runtime.threads.start({}).thread.id;

t.test('a prompt is stored when turn/start is answered, before anything of the turn runs', async (t) => {
  const { store } = stored(t);
  const turns = { ...settings.turns, resume: 'never' as const };
  const { runtime, bugs } = service(neverEnds(), { store, settings: { ...settings, turns } });
  const threadId = started(runtime);
  const { listener, events } = listening();
  const toolResults = [{ callId: 'c1', text: 'found', isError: false }];
  const { turn, begin } = runtime.turns.start(threadId, prompt, listener, { toolResults });
  t.strictSame(turn.items, [], 'the answer to turn/start names no item');
  const items = store.turns(threadId, { limit: 1 })[0]?.items ?? [];
  t.match(items, [
    { type: 'toolResult', callId: 'c1', status: 'completed' },
    { type: 'userMessage', input: prompt, status: 'completed' },
  ]);
  // The server is killed here: the next one finds the prompt.
  const next = service(says('x'), { store }).runtime;
  t.match(next.threads.read(threadId, { includeTurns: true }).turns, [
    { status: 'cancelled', interruptedBy: 'crash', items: [{ type: 'toolResult' }, { input: prompt }] },
  ]);
  begin();
  t.strictSame(
    events.flatMap((event) => (event.method === 'item/completed' ? [event.params.item] : [])),
    items,
    'the events name the stored items',
  );
  await runtime.close();
  t.strictSame(bugs, []);
});

t.test('a queued prompt leaves the queue in the commit of its turn', async (t) => {
  const { store } = stored(t);
  const { runtime } = service(says('x'), { store });
  const threadId = started(runtime);
  const { begin } = runtime.turns.start(threadId, prompt, undefined);
  runtime.turns.enqueue(threadId, [{ type: 'text', text: 'next' }]);
  const transaction = store.transaction.bind(store);
  const seen: string[] = [];
  store.transaction = (work) => {
    transaction(work);
    const last = store.turns(threadId, { limit: 1 })[0];
    seen.push(`${last?.id} ${last?.items.length === 0} ${store.queue(threadId).length}`);
  };
  begin();
  await runtime.turns.running(threadId)?.ended;
  t.ok(seen.includes('turn_002 false 0'), 'the first sight of the turn');
  t.notOk(seen.some((each) => each === 'turn_002 false 1' || each.startsWith('turn_002 true')));
  await runtime.close();
});

t.test('a turn whose first commit fails does not start', async (t) => {
  const { store } = stored(t);
  const { runtime } = service(says('x'), { store });
  const threadId = started(runtime);
  const alsoStore = () => {
    throw new StorageError('diskFull', 'no room');
  };
  t.throws(() => runtime.turns.start(threadId, prompt, undefined, { alsoStore }), /disk|stor/i);
  t.strictSame(store.turns(threadId, { limit: 9 }), []);
  t.equal(runtime.turns.count, 0);
  const { begin, ended } = runtime.turns.start(threadId, prompt, undefined);
  begin();
  t.match(await ended, { status: 'completed', items: [{ type: 'userMessage' }, { type: 'agentMessage' }] });
  await runtime.close();
});

t.test('turns that start in one moment share a commit, and each is stored before its start is answered', async (t) => {
  const { store } = stored(t);
  const { runtime, bugs } = service(says('x'), { store });
  const threadIds = [started(runtime), started(runtime), started(runtime)];
  const alone = runtime.turns.startWithOthers(started(runtime), prompt, undefined);
  const transaction = store.transaction.bind(store);
  let commits = 0;
  store.transaction = (...given) => {
    commits += 1;
    transaction(...given);
  };
  const starts = threadIds.map((id) => runtime.turns.startWithOthers(id, prompt, undefined));
  t.strictSame([commits, runtime.turns.count], [0, 4]);
  await Promise.all(starts.map(({ stored }) => stored));
  t.equal(commits, 1);
  for (const id of threadIds) t.match(store.turns(id, { limit: 1 }), [{ items: [{ input: prompt }] }]);
  await alone.stored;
  for (const { begin } of [alone, ...starts]) begin();
  for (const { ended } of [alone, ...starts]) t.match(await ended, { status: 'completed' });
  await runtime.close();
  t.strictSame(bugs, []);
});

t.test('a read in the moment of a start includes the turn', async (t) => {
  const { store } = stored(t);
  const { runtime } = service(says('x'), { store });
  const threadId = started(runtime);
  runtime.turns.start(started(runtime), prompt, undefined).begin();
  const { begin, ended } = runtime.turns.startWithOthers(threadId, prompt, undefined);
  t.match(runtime.threads.read(threadId, { includeTurns: true }).turns, [{ id: 'turn_001', status: 'running' }]);
  begin();
  t.match(await ended, { status: 'completed' });
  await runtime.close();
});

t.test('turns whose shared commit fails are refused, and their threads can be deleted and start again', async (t) => {
  const { store } = stored(t);
  const { runtime, bugs } = service(says('x'), { store });
  const [first, second] = [started(runtime), started(runtime)];
  const { transaction } = store;
  store.transaction = () => {
    throw new StorageError('diskFull', 'no room');
  };
  const starts = [first, second].map((id) => runtime.turns.startWithOthers(id, prompt, undefined));
  const deleted = runtime.threads.delete(second);
  for (const { stored } of starts) await t.rejects(stored, { name: 'AgentError', reason: 'storageFailed' });
  store.transaction = transaction;
  await deleted;
  t.strictSame([runtime.turns.count, store.turns(first, { limit: 9 })], [0, []]);
  const { begin, ended } = runtime.turns.start(first, prompt, undefined);
  begin();
  t.match(await ended, { id: 'turn_001', status: 'completed' });
  await runtime.close();
  t.strictSame(bugs, []);
});
