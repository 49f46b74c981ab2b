/** Engines that are killed and started again below two workspaces: each is reported lost in time, and has one container afterwards. */
import t, { type Test } from 'tap';
import type { AppServerRecord } from '../../src/protocol/index.ts';
import { eventually, makeWorkspace, type TestHub } from '../hub/harness.ts';
import { killEngine, stopEngine } from './engine.ts';
import {
  containers,
  engineDirectory,
  homeOf,
  hubOf,
  keepsContainers,
  output,
  place,
  restartEngine,
  settled,
  turn,
} from './places-scene.ts';

const directory = engineDirectory();

/** Longest time until a lost place is reported. */
const lostMs = 20_000;

/** Two workspaces with a container each. */
async function scene(t: Test) {
  const hub = await hubOf(t, homeOf(t));
  const workspaces = [makeWorkspace(t), makeWorkspace(t)];
  const records = await Promise.all(workspaces.map((workspace) => hub.ensure(workspace, { place })));
  return { hub, workspaces, records };
}

/** Kills the engine, and checks that both workspaces report it in time, and work on. */
async function loseEngine(t: Test, hub: TestHub, workspaces: readonly string[]): Promise<void> {
  killEngine(directory);
  const killed = performance.now();
  for (const workspace of workspaces) {
    const lost = await settled(hub, workspace, (record) => record.place?.state === 'lost');
    t.ok(performance.now() - killed < lostMs, 'the loss is reported in time');
    t.match(lost, { state: 'running', problems: [{ code: 'placeLost', what: /engine does not answer/ }] });
    t.match(output(await turn(lost, 'run: echo without engine')), /without engine/);
  }
}

/** Containers of Docker end when it is started again. */
if (!keepsContainers())
  t.test(
    'an engine that is killed and started again: each workspace is lost in time, then has one new container',
    async (t) => {
      const { hub, workspaces, records } = await scene(t);
      await loseEngine(t, hub, workspaces);
      await restartEngine();
      for (const [index, workspace] of workspaces.entries()) {
        const back = await settled(
          hub,
          workspace,
          ({ state, place: now }) => state === 'running' && now?.state === 'ready',
        );
        const replaced = await settled(
          hub,
          workspace,
          ({ state, incarnation }) => state === 'running' && incarnation > (records[index]?.incarnation ?? 0),
        );
        t.notMatch(back.problems, [{ code: 'placeLost' }]);
        t.match(output(await turn(replaced, 'run: echo again')), /again/);
      }
      t.equal((await containers()).length, 2);
      await hub.shutdown();
      t.same(await containers(), []);
    },
  );

t.test(
  'an engine that keeps its containers while it is away: both are followed again, and neither is restarted',
  async (t) => {
    if (!keepsContainers()) {
      await stopEngine(directory);
      await restartEngine('--live-restore');
    }
    const { hub, workspaces, records } = await scene(t);
    const before = await containers();
    await loseEngine(t, hub, workspaces);
    await restartEngine('--live-restore');
    for (const [index, workspace] of workspaces.entries()) {
      const { pid, incarnation } = records[index] ?? {};
      const back = await settled(hub, workspace, (record) => record.place?.state === 'ready');
      t.match(back, { state: 'running', pid, incarnation });
    }
    t.same((await containers()).toSorted(), before.toSorted());
    await hub.shutdown();
    t.same(await containers(), []);
    if (keepsContainers()) return;
    await stopEngine(directory);
    await restartEngine();
  },
);

t.test('a Hub that starts while the engine is away adopts both containers', async (t) => {
  const home = homeOf(t);
  const first = await hubOf(t, home);
  const workspaces = [makeWorkspace(t), makeWorkspace(t)];
  const records = await Promise.all(workspaces.map((workspace) => first.ensure(workspace, { place })));
  killEngine(directory);
  await first.kill('SIGKILL');
  const next = await hubOf(t, home);
  for (const [index, workspace] of workspaces.entries()) {
    const isAdopted = ({ state, place: now }: AppServerRecord) => state === 'running' && now?.state === 'lost';
    t.match(await settled(next, workspace, isAdopted), { adopted: true, pid: records[index]?.pid });
  }
  await restartEngine();
  for (const workspace of workspaces)
    await settled(
      next,
      workspace,
      ({ state, adopted, place: now }) =>
        state === 'running' && adopted === keepsContainers() && now?.state === 'ready',
    );
  await eventually(async () => (await containers()).length === 2, 'each workspace has one container');
  await next.shutdown();
  t.same(await containers(), []);
});
