/** Facts of the chart that a later Hub reads, by situation. */
import t from 'tap';
import { storedFrom } from '../../src/hub/record.ts';
import type { StoredWorkspace } from '../../src/hub/store.ts';
import { failure } from '../machines/harness.ts';
import { type policy, Workspace } from '../machines/worlds.ts';

const proxy: StoredWorkspace['proxy'] = {
  marker: 'mark',
  identity: null,
  request: {
    enabled: true,
    binaryPath: '/bin/proxy',
    configPath: '/p.json',
    endpoint: 'http://127.0.0.1:1',
    apiKey: 'k',
  },
};
const known: StoredWorkspace = {
  ...{ workspacePath: '/w', canonicalWorkspacePath: '/w', directory: null, server: null, external: false, proxy },
  ...{ exitCode: 7, lastError: 'It ended with code 7.', lastStartedAt: null, lastExitedAt: null },
  ...{
    rest: { kind: 'crashed', message: 'It ended with code 7.' },
    report: null,
    configHash: null,
    failures: [],
    stoppedByUser: false,
    asleep: null,
    tokenSeed: null,
  },
};

/** A workspace that an earlier Hub knew, and its stored facts, which follow its chart. */
function restored(changes: Partial<typeof policy> = {}) {
  const world = new Workspace(changes, false);
  const stored = { ...known };
  world.actor.subscribe((snapshot) => Object.assign(stored, storedFrom(snapshot, stored)));
  const end = () => ({ exitCode: stored.exitCode, lastError: stored.lastError, rest: stored.rest });
  return { world, stored, end };
}

const before = { exitCode: 7, lastError: known.lastError, rest: known.rest };

t.test('a start before its first process keeps the last end', async (t) => {
  const { world, stored, end } = restored();
  await world.ensure('keep');
  t.same(end(), before);
  t.same(stored.proxy, proxy);
});

t.test('a running server has no end, and without a sidecar no request for one', async (t) => {
  const { world, stored, end } = restored();
  await world.run();
  t.same(end(), { exitCode: null, lastError: null, rest: null });
  t.equal(stored.proxy, null);
});

t.test(
  'a running server with a sidecar keeps the request, which a stop by the Hub keeps and one by a user ends',
  async (t) => {
    for (const [reason, left] of [
      ['hub', proxy],
      ['user', null],
    ] as const) {
      const { world, stored } = restored();
      await world.run('keep');
      t.same(stored.proxy, proxy);
      await world.stop(reason);
      await world.exited(0);
      await world.sidecar('exited');
      t.equal(world.state, 'stopped');
      t.same(stored.proxy, left, reason);
    }
  },
);

t.test('a stopped server has its exit code and no error', async (t) => {
  const { world, end } = restored();
  await world.run();
  await world.stop();
  await world.exited(143);
  t.same(end(), { exitCode: 143, lastError: null, rest: null });
});

t.test('a crash is stored while the restart is due, and why it rests only when none is', async (t) => {
  const { world, end } = restored();
  await world.run();
  await world.exited(3);
  t.equal(world.state, 'exited.backingOff');
  t.match(end(), { exitCode: 3, lastError: /code 3/, rest: null });
  const last = restored({ restart: 'never' });
  await last.world.run();
  await last.world.exited(3);
  t.equal(last.world.state, 'exited.resting');
  t.match(last.end(), { exitCode: 3, lastError: /code 3/, rest: { kind: 'crashed', message: /code 3/ } });
  await last.world.stop();
  t.match(last.end(), { exitCode: 3, lastError: /code 3/, rest: null }, 'a stop at rest keeps the error');
});

t.test('a server that gave up says so', async (t) => {
  const { world, end } = restored({ maxRestarts: 0 });
  await world.run();
  await world.exited(3);
  t.match(end(), {
    exitCode: 3,
    lastError: /Gave up/,
    rest: { kind: 'gaveUp', message: /^w is down: /, note: /^The Hub gave up; the limit is 1 in / },
  });
});

t.test('a refused start keeps the last end and stores its reason only when it rests', async (t) => {
  const { world, end } = restored();
  await world.ensure();
  await world.notPrepared(failure('workspaceLocked', false, 'Another process owns it.'));
  t.equal(world.state, 'stopped');
  t.same(end(), before);
  const invalid = restored();
  await invalid.world.ensure();
  await invalid.world.notPrepared(failure('invalidConfig', false, 'The file is invalid.'));
  t.equal(invalid.world.state, 'exited.resting');
  t.match(invalid.end(), { exitCode: null, rest: { kind: 'invalidConfig', message: 'The file is invalid.' } });
});
