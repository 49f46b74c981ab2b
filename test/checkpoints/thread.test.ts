import t from 'tap';
import { CheckpointError, EngineThread } from '../../src/checkpoints/index.ts';
import { bench, limits } from './tree-of-files.ts';

const turn = { thread: 'thread', turn: 'turn_001' };

/** Timers, watches and threads of this process. */
const resources = () =>
  process
    .getActiveResourcesInfo()
    .filter((kind) => /^(?:Timeout|Immediate|FSEventWrap|StatWatcher|Worker|MessagePort)$/.test(kind))
    .sort();

t.test('a tree is saved and restored by a thread, which ends when its last store is released', async (t) => {
  const { root, stores: directory, write, read } = bench(t);
  const place = { treeId: 'tree', root, directory, limits, ownDirectories: [], gitEnvironment: undefined };
  const engines = new EngineThread();
  t.teardown(() => engines.release('tree'));
  const atRest = resources();
  write('a.txt', 'before');
  const started = engines.call(place, 'mark', [[{ edge: 'start', ...turn }]]);
  t.same(resources(), [...atRest, 'Immediate'].sort(), 'the thread begins in a turn of the event loop of its own');
  await started;
  write('a.txt', 'after');
  await engines.call(place, 'mark', [[{ edge: 'end', ...turn }]]);

  await t.rejects(
    engines.call(place, 'apply', [7]),
    new CheckpointError('there is no such restore'),
    'a failure keeps its type and its message',
  );
  const crowded = { ...place, treeId: 'crowded', limits: { ...limits, freeBytes: Number.MAX_SAFE_INTEGER } };
  await engines.release('tree');
  await t.rejects(
    engines.call(crowded, 'markDeath', [{}]).then(() => engines.call(crowded, 'mark', [[]])),
    CheckpointError,
  );
  await engines.release('crowded');

  // The next call begins another thread, which opens the store again.
  const order = { thread: 'thread', turns: ['turn_001'], paths: undefined, force: false, conversation: [] };
  const { number = 0 } = await engines.call(place, 'prepare', [order]);
  await engines.call(place, 'conclude', [number, await engines.call(place, 'apply', [number])]);
  t.equal(read('a.txt'), 'before');

  await engines.release('tree');
  t.same(resources(), atRest, 'at rest there is no thread, no timer and no watch');
});

t.test('a thread that is begun ahead of the first call serves it, and ends as any other', async (t) => {
  const { root, stores: directory, write } = bench(t);
  const place = { treeId: 'tree', root, directory, limits, ownDirectories: [], gitEnvironment: undefined };
  const engines = new EngineThread();
  t.teardown(() => engines.release('tree'));
  const atRest = resources();
  write('a.txt', 'before');
  engines.prepare();
  engines.prepare();
  t.same(resources(), atRest, 'a thread that nothing waits for keeps no process alive');
  const started = engines.call(place, 'mark', [[{ edge: 'start', ...turn }]]);
  t.notOk(resources().includes('Immediate'), 'the call goes to the thread that there is');
  await started;
  await engines.release('tree');
  t.same(resources(), atRest);
});

t.test(
  'a kept thread serves the stores that are opened after the last release, and keeps no process alive',
  async (t) => {
    const { root, stores: directory, write, read } = bench(t);
    const place = { treeId: 'tree', root, directory, limits, ownDirectories: [], gitEnvironment: undefined };
    const engines = new EngineThread({ isKept: true });
    const atRest = resources();
    write('a.txt', 'before');
    await engines.call(place, 'mark', [[{ edge: 'start', ...turn }]]);
    write('a.txt', 'after');
    await engines.call(place, 'mark', [[{ edge: 'end', ...turn }]]);
    await engines.release('tree');
    t.same(resources(), atRest);

    const order = { thread: 'thread', turns: ['turn_001'], paths: undefined, force: false, conversation: [] };
    const prepared = engines.call(place, 'prepare', [order]);
    t.notOk(resources().includes('Immediate'), 'the call goes to the thread that there is');
    const { number = 0 } = await prepared;
    await engines.call(place, 'conclude', [number, await engines.call(place, 'apply', [number])]);
    t.equal(read('a.txt'), 'before');
    await engines.release('tree');
    t.same(resources(), atRest);
  },
);

t.test('a thread that is lost fails the requests that wait, and the next request begins another', async (t) => {
  const { root, stores: directory } = bench(t);
  const place = { treeId: 'tree', root, directory, limits, ownDirectories: [], gitEnvironment: undefined };
  const program = "import { parentPort } from 'node:worker_threads'; parentPort.on('message', () => process.exit(3));";
  const engines = new EngineThread({ file: new URL(`data:text/javascript,${encodeURIComponent(program)}`) });
  const lost = new CheckpointError('the thread of the checkpoints failed: it ended');
  await Promise.all([
    t.rejects(engines.call(place, 'turns', ['thread']), lost),
    t.rejects(engines.call(place, 'list', ['thread']), lost),
  ]);
  await t.rejects(engines.call(place, 'turns', ['thread']), lost);
  await engines.release('tree');
});

t.test('a thread that cannot begin fails the requests that wait', async (t) => {
  const { root, stores: directory } = bench(t);
  const place = { treeId: 'tree', root, directory, limits, ownDirectories: [], gitEnvironment: undefined };
  const engines = new EngineThread({ file: 'no path' });
  const threads = ['thread', 'other'];
  await Promise.all(threads.map((thread) => t.rejects(engines.call(place, 'turns', [thread]), CheckpointError)));
  await engines.release('tree');
});
