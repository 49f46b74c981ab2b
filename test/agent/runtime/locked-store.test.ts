/** Another program that holds the database of a workspace, as a backup does. */
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { openStore, StorageError, type ThreadStore } from '../../../src/agent/index.ts';
import { Feed } from '../../../src/agent/runtime/feed.ts';
import { DurableJournal } from '../../../src/agent/runtime/journal.ts';
import { LocalEngines, WorkspaceCheckpoints } from '../../../src/checkpoints/index.ts';
import { problemsOf } from '../../../src/protocol/index.ts';
import { loadSqlite } from '../../../src/supervise/index.ts';
import { limits } from '../../checkpoints/tree-of-files.ts';
import { temporaryDirectory } from '../../hub/harness.ts';
import { answers, call, listening, say, service, talk, text, tool } from '../helpers.ts';

function lockable(t: Test) {
  const directory = temporaryDirectory(t);
  const store = openStore(directory);
  t.teardown(() => store.close());
  const other = new (loadSqlite().DatabaseSync)(join(directory, 'state.db'));
  t.teardown(() => other.close());
  /** Holds the database until `refusals` writes were refused. */
  const hold = (refusals: number) => {
    other.exec('BEGIN EXCLUSIVE');
    let seen = 0;
    const { transaction } = store.threads;
    store.threads.transaction = (work) => {
      try {
        transaction.call(store.threads, work);
      } catch (error) {
        seen += 1;
        if (seen === refusals) other.exec('ROLLBACK');
        throw error;
      }
    };
    return () => seen;
  };
  return { directory, store, hold };
}

t.test('a turn continues when another program has held the database for a while', async (t) => {
  const { store, hold } = lockable(t);
  let refused = () => 0;
  const write = tool({
    name: 'Write',
    run: async () => {
      refused = hold(2);
      return { text: 'written', isError: false };
    },
  });
  const provider = answers([call('c1', 'Write')], [say('done')]);
  const { runtime, bugs } = service(provider, { store: store.threads, tools: () => [write] });
  const { thread } = runtime.threads.start({});
  const { turn } = await talk(runtime, thread.id, 'x');
  t.match(turn, { status: 'completed' });
  t.equal(refused(), 2, 'control: writes were refused meanwhile');
  t.equal(store.threads.turns(thread.id, { limit: 1 })[0]?.status, 'completed', 'all of it is stored');
  t.same(bugs, []);
});

t.test(
  'a database that stays locked fails the writes, and the problem names the command that finds the holder',
  async (t) => {
    const { directory, store, hold } = lockable(t);
    hold(1);
    const patience = { retryMs: 1, lockedMs: 0 };
    const journal = new DurableJournal(store.threads as ThreadStore, new Feed(t.error), t.error, patience);
    const faults: unknown[] = [];
    const owner = { threadId: 'thread', asker: undefined, onStorageFault: (error: unknown) => faults.push(error) };
    journal.add(owner, () => {}, undefined);
    journal.flush();
    const [fault] = faults;
    t.ok(fault instanceof StorageError && fault.code === 'busy');
    const message = fault instanceof Error ? fault.message : '';
    const command = `fuser -v ${join(directory, 'state.db')}`;
    t.match(message, `Another program holds ${join(directory, 'state.db')}`);
    const failure = { code: 'storageFailed', message };
    const report = {
      health: 'failing' as const,
      failure,
      failuresInARow: 1,
      model: null,
      mcpServers: { total: 0, down: [], toolProblems: [] },
    };
    const facts = {
      state: 'running',
      workspace: '/w',
      lastError: null,
      rest: null,
      configProblem: null,
      places: {},
      isConfigChanged: false,
      lostHistory: null,
    };
    const [problem] = problemsOf({ ...facts, report, restrictedSettings: [], serviceNotes: [] });
    t.equal(problem?.next, command);
  },
);

t.test('the files of a turn that could not be stored are taken back by an undo', async (t) => {
  const { directory, store } = lockable(t);
  const workspacePath = join(directory, 'workspace');
  mkdirSync(workspacePath);
  const checkpoints = new WorkspaceCheckpoints({
    directory: join(directory, 'checkpoints'),
    limits,
    gitEnvironment: undefined,
    rollback: (threadId, turnIds) => store.threads.deleteTurns(threadId, turnIds),
    isInUse: () => false,
    engines: new LocalEngines(),
  });
  t.teardown(() => checkpoints.close());
  const refused = Promise.withResolvers<void>();
  const write = tool({
    name: 'Write',
    run: async () => {
      writeFileSync(join(workspacePath, 'made.txt'), 'made');
      const { transaction } = store.threads;
      store.threads.transaction = () => {
        store.threads.transaction = transaction;
        refused.resolve();
        throw new StorageError('failed', 'The disk refuses');
      };
      return { text: 'written', isError: false };
    },
  });
  const provider = answers([call('c1', 'Write')], [say('done')]);
  const { runtime } = service(provider, {
    ...{ workspacePath, store: store.threads, tools: () => [write] },
    checkpoints: Object.assign(checkpoints, { recovered: () => undefined }) as never,
  });
  const { thread } = runtime.threads.start({});
  const ear = listening();
  runtime.turns.start(thread.id, text('x'), ear.listener).begin();
  await refused.promise;
  await ear.until('turn/failed');
  t.match((await runtime.files.diff(thread.id, undefined, 'summary')).files, [{ path: 'made.txt' }]);
  t.match(await runtime.files.undo(thread.id, 1, false), { restored: ['made.txt'] });
  t.notOk(existsSync(join(workspacePath, 'made.txt')));
});
