/** Agent servers in containers under random faults, Hubs that are killed during a start, and a user without root on the command line. */
import { chmodSync, readFileSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import t from 'tap';
import { AppServerClient } from '../../src/client/index.ts';
import type { AppServerRecord } from '../../src/protocol/index.ts';
import { eventually, isAlive, killIfThere, makeWorkspace, type TestHub } from '../hub/harness.ts';
import { killEngine, signalEngine } from './engine.ts';
import {
  canPause,
  containers,
  docker,
  engineDirectory,
  engineSocket,
  homeOf,
  hubOf,
  isRootless,
  keepsContainers,
  place,
  restartEngine,
  settled,
} from './places-scene.ts';
import { movesThereAndBack, plainUser } from './plain-user.ts';

const engine = engineSocket();

t.test('a Hub that is killed between create, start and attach leaves no second container', async (t) => {
  const home = homeOf(t);
  const workspace = makeWorkspace(t);
  for (const delayMs of [50, 150, 300, 500, 800, 1_200]) {
    const hub = await hubOf(t, home);
    const started = hub.ensure(workspace, { place }).catch(() => undefined);
    await pause(delayMs);
    await hub.kill('SIGKILL');
    await started;
    const next = await hubOf(t, home);
    t.match(
      await next.ensure(workspace, { place }),
      { state: 'running', place: { state: 'ready' } },
      `after ${delayMs} ms`,
    );
    t.equal((await containers()).length, 1, `one container after ${delayMs} ms`);
    await next.shutdown();
    t.same(await containers(), [], `none is left after ${delayMs} ms`);
  }
});

if (!isRootless() && !keepsContainers())
  t.test('a user without root runs a workspace in a container, and moves it back', async (t) => {
    chmodSync(engine, 0o666);
    await movesThereAndBack(t, await plainUser(t), {
      engine,
      network: 'none',
      version: /docker 20/,
      uidInside: /1234/,
    });
  });

/** Numbers below 1 from a seed, which the test prints. */
function randomOf(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

interface Target {
  hub: TestHub;
  readonly workspace: string;
  /** Starts the Hub of the home again. */
  readonly nextHub: () => Promise<TestHub>;
}

const parentOf = (pid: number): number =>
  Number(/^PPid:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]);
const pidOf = async ({ hub, workspace }: Target): Promise<number> => (await hub.record(workspace)).pid ?? 0;
/** Kills, removes or pauses the container, if there is one now. */
const inEngine = async (...words: string[]) => {
  const [id] = await containers();
  if (id !== undefined) await docker(...words, id).catch(() => undefined);
};

const randomFaults: Readonly<Record<string, (target: Target) => Promise<unknown>>> = {
  'the Hub is killed': async (target) => {
    await target.hub.kill('SIGKILL');
    target.hub = await target.nextHub();
  },
  'the agent server is killed': async (target) => {
    const pid = await pidOf(target);
    if (pid > 1) killIfThere(pid);
  },
  'the shim of the container is killed': async (target) => {
    const pid = await pidOf(target);
    const shim = pid > 1 && isAlive(pid) ? parentOf(pid) : 0;
    // A container outlives its shim, and then has the first process as its parent.
    if (shim > 1) killIfThere(shim);
  },
  'the container is killed': () => inEngine('kill'),
  'the container is removed': () => inEngine('rm', '--force'),
  ...(canPause() && {
    'the container is paused for two seconds': async () => {
      await inEngine('pause');
      await pause(2_000);
      await inEngine('unpause');
    },
  }),
  'the engine hangs for three seconds': async () => {
    signalEngine(engineDirectory(), 'SIGSTOP');
    await pause(3_000);
    signalEngine(engineDirectory(), 'SIGCONT');
  },
  'the engine is killed': async () => {
    killEngine(engineDirectory());
    await restartEngine();
  },
  'the engine and the Hub are killed': async (target) => {
    killEngine(engineDirectory());
    await target.hub.kill('SIGKILL');
    target.hub = await target.nextHub();
    await restartEngine();
  },
};

/** Starts the workspace, and runs one turn in a new conversation. Reports the conversation and the turn when they are acknowledged. */
async function work({ hub, workspace }: Target, file: string, acknowledged: Map<string, string>): Promise<void> {
  const record = await hub.ensure(workspace, { place });
  const client = await AppServerClient.connect(record.endpoints['appServerWebSocket'] ?? '');
  try {
    const { thread } = (await client.request('thread/start', { config: { approvalPolicy: 'autoApprove' } })) as {
      thread: { id: string };
    };
    const input = [{ type: 'text', text: `write ${file}: done` }];
    const { turn } = (await client.request('turn/start', { threadId: thread.id, input })) as { turn: { id: string } };
    acknowledged.set(thread.id, turn.id);
  } finally {
    client.close();
  }
}

/** Reads the conversations when the workspace runs. @throws Error when the agent server ends in between */
async function readAll(
  { hub, workspace }: Target,
  threads: ReadonlyMap<string, string>,
): Promise<Map<string, unknown>> {
  const isReady = (now: AppServerRecord) => now.state === 'running' && now.place?.state === 'ready';
  const record = await settled(hub, workspace, isReady);
  const client = await AppServerClient.connect(record.endpoints['appServerWebSocket'] ?? '');
  const seen = new Map<string, unknown>();
  try {
    for (const threadId of threads.keys())
      seen.set(threadId, await client.request('thread/read', { threadId, includeTurns: true }));
    return seen;
  } finally {
    client.close();
  }
}

t.test(
  'twenty random faults: one container, every acknowledged turn is there and ends, and nothing is left',
  async (t) => {
    const seed = Number(process.env['ORATORIO_TEST_SEED'] ?? '20') || Math.trunc(Math.random() * 1e9);
    t.comment(`seed ${seed}`);
    const random = randomOf(seed);
    const home = homeOf(t);
    const workspace = makeWorkspace(t, {
      Supervision: { BackoffBaseMs: 50, BackoffMaxMs: 1_000, ProbeIntervalMs: 500, MaxRestarts: 1_000 },
    });
    const nextHub = () => hubOf(t, home);
    const target: Target = { hub: await nextHub(), workspace, nextHub };
    const acknowledged = new Map<string, string>();
    const names = Object.keys(randomFaults);
    for (let round = 1; round <= 20; round += 1) {
      const name = names[Math.trunc(random() * names.length)] ?? '';
      const afterMs = Math.trunc(random() * 2_500);
      const working = work(target, `f${round}.txt`, acknowledged).catch(() => undefined);
      await pause(afterMs);
      await randomFaults[name]?.(target);
      await Promise.race([working, pause(60_000, undefined, { ref: false })]);
      await eventually(() => target.hub.ensure(workspace, { place }).catch(() => undefined), 'it runs again');
      // The Hub may learn of the fault after its answer.
      const seen = await eventually(() => readAll(target, acknowledged).catch(() => undefined), 'it answers');
      for (const [threadId, turnId] of acknowledged)
        t.match(seen.get(threadId), { thread: { turns: [{ id: turnId }] } }, `round ${round}: a turn is there`);
      t.equal((await containers()).length, 1, `round ${round}: ${name} after ${afterMs} ms`);
    }
    t.ok(acknowledged.size > 5, `${acknowledged.size} turns were acknowledged`);
    await target.hub.shutdown();
    t.same(await containers(), []);
  },
);
