/** Faults of containers of a real engine: command line and page name each reason and the next step within 20 s. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import t, { type Test } from 'tap';
import { launchBrowser } from '../browser.ts';
import { must } from '../deploy/must.ts';
import { type BuiltHub, makePlace, oratorio, type Place, startHub } from '../e2e/harness.ts';
import { type Case, checkFaces, openPage } from '../e2e/trouble.ts';
import { eventually } from '../hub/harness.ts';
import { killEngine, signalEngine } from './engine.ts';
import {
  containers,
  docker,
  engineDirectory,
  engineSocket,
  place as inContainer,
  mountSmall,
  restartEngine,
  turn,
} from './places-scene.ts';
import { images } from './variables.ts';

/** Longest time until both faces name a fault. */
const reportMs = 20_000;

interface Scene {
  readonly t: Test;
  readonly place: Place;
  readonly hub: BuiltHub;
  readonly page: Page;
  readonly home: string;
}

const MemoryMiB = 400;
const homeSettings = () => ({
  Place: { Container: { Engine: engineSocket(), Image: images.base, Network: 'none', AllowRoot: true, MemoryMiB } },
});

/** A Hub of the built product whose home is 64 MiB in memory, and its page. */
async function scene(t: Test): Promise<Scene> {
  const place = makePlace(t);
  const { home } = place;
  mkdirSync(home, { mode: 0o700 });
  await mountSmall(t, home);
  writeFileSync(join(home, 'config.json'), JSON.stringify(homeSettings()), { mode: 0o600 });
  const hub = await startHub(place);
  const browser = await launchBrowser();
  t.teardown(() => browser.close());
  return { t, place, hub, page: await openPage(browser, place), home };
}

const recordOf = (hub: BuiltHub, workspacePath: string) => hub.client.byWorkspace(workspacePath);

/** Starts a workspace that rests after its first failure. */
async function started({ place, hub }: Scene, name: string, image: string = images.base): Promise<string> {
  const workspacePath = place.workspace(name, {
    Supervision: {
      MaxRestarts: 0,
      BackoffBaseMs: 60_000,
      BackoffMaxMs: 60_000,
      ProbeIntervalMs: 500,
      ProbeTimeoutMs: 500,
      UnhealthyGraceMs: 600_000,
    },
  });
  await hub.client.ensure({ workspacePath, place: { ...inContainer, image } });
  return workspacePath;
}

/** Container of a workspace. */
async function containerOf(workspacePath: string): Promise<string> {
  for (const id of await containers()) {
    const details = await docker('inspect', '--format', '{{.Config.WorkingDir}}', id);
    if (details.trim() === workspacePath) return id;
  }
  throw new Error(`${workspacePath} has no container`);
}

/** Checks both faces, and that they name the fault in time. */
async function named({ t, place, hub, page }: Scene, since: number, code: string, wanted: Case): Promise<void> {
  let seen = '';
  await eventually(
    async () => {
      const { problems } = await recordOf(hub, join(place.root, wanted.name));
      seen = JSON.stringify(problems);
      return problems.some((problem) => problem.code === code) || undefined;
    },
    () => `${wanted.name} has the problem ${code}: ${seen}`,
    60_000,
  );
  await checkFaces(t, place, page, [wanted]);
  t.ok(performance.now() - since < reportMs, `${wanted.name}: within 20 s`);
}

interface Fault extends Case {
  /** Code of the problem. */
  readonly code: string;
  /** Causes it for a workspace that runs. */
  readonly cause: (scene: Scene, workspacePath: string) => Promise<unknown>;
  readonly undo?: (scene: Scene, workspacePath: string) => Promise<unknown>;
}

/** Files in memory count for the container, but for no process of it: the kernel ends the largest one, the agent server. */
async function exceedMemory({ hub }: Scene, workspacePath: string): Promise<void> {
  const record = await recordOf(hub, workspacePath);
  void turn(record, 'run: head -c 900m /dev/zero > /tmp/filling').catch(() => undefined);
}

const faults: readonly Fault[] = [
  {
    name: 'killed',
    state: 'gave up',
    code: 'gaveUp',
    what: /killed is down: its process was killed \(SIGKILL\)/,
    next: /oratorio up \S+killed/,
    cause: async (_, workspacePath) => docker('kill', await containerOf(workspacePath)),
  },
  {
    name: 'removed',
    state: 'gave up',
    code: 'gaveUp',
    what: /removed is down: its process ended because its container was removed/,
    next: /oratorio up \S+removed/,
    cause: async (_, workspacePath) => docker('rm', '--force', await containerOf(workspacePath)),
  },
  {
    name: 'memory',
    state: 'gave up',
    code: 'gaveUp',
    what: /memory is down: its process exceeded the memory limit of its container \(400 MiB, Place\.Container\.MemoryMiB\)/,
    next: /oratorio up \S+memory/,
    cause: exceedMemory,
  },
  {
    name: 'paused',
    state: 'not answering',
    code: 'notAnswering',
    what: /does not answer: its container is paused; continue it: docker unpause oratorio-/,
    next: /oratorio restart \S+paused/,
    cause: async (_, workspacePath) => docker('pause', await containerOf(workspacePath)),
    undo: async (_, workspacePath) => docker('unpause', await containerOf(workspacePath)),
  },
  {
    name: 'hangs',
    state: 'ready',
    code: 'placeLost',
    what: /The container engine does not answer\. Nothing is started, ended or restarted until it does\./,
    next: /oratorio place \S+hangs/,
    cause: async () => signalEngine(engineDirectory(), 'SIGSTOP'),
    undo: async () => signalEngine(engineDirectory(), 'SIGCONT'),
  },
];

/** Fault that keeps a workspace of a container from its next start. */
interface Obstacle extends Omit<Case, 'next'> {
  /** Code of the problem. */
  readonly code: string;
  readonly cause: (scene: Scene) => Promise<unknown>;
  readonly undo: (scene: Scene) => Promise<unknown>;
}

/** Image of the workspaces that an obstacle keeps from their start. */
const taggedImage = 'oratorio-test-words:1';
const tagImage = () => docker('tag', images.base, taggedImage);

const obstacles: readonly Obstacle[] = [
  {
    ...{ name: 'noimage', state: 'failed', code: 'exited' },
    what: /does not have the image oratorio-test-words:1, and Oratorio never pulls images\. Pull it, e\.g\. docker pull/,
    cause: () => docker('rmi', taggedImage),
    undo: tagImage,
  },
  {
    ...{ name: 'noengine', state: 'gave up', code: 'gaveUp' },
    what: /The container engine at \S+ does not answer: .*Start the engine, then try again/,
    cause: async () => killEngine(engineDirectory()),
    undo: () => restartEngine(),
  },
  {
    ...{ name: 'fulldisk', state: 'restarting', code: 'exited' },
    what: /ENOSPC|no space left/i,
    cause: ({ home }) =>
      must('dd', ['if=/dev/zero', `of=${join(home, 'filling')}`, 'bs=4k'], { timeoutMs: 60_000 }).catch(() => ''),
    undo: ({ home }) => must('rm', [join(home, 'filling')], { timeoutMs: 10_000 }),
  },
];

t.test('each fault of a running container has its reason and next step on both faces, within 20 s', async (t) => {
  const all = await scene(t);
  for (const { code, cause, undo, ...wanted } of faults) {
    const workspacePath = await started(all, wanted.name);
    const since = performance.now();
    await cause(all, workspacePath);
    await named(all, since, code, wanted);
    await undo?.(all, workspacePath);
  }
  await all.hub.shutdown();
  t.same(await containers(), []);
});

t.test('each obstacle to a start has its reason and next step on both faces, within 20 s', async (t) => {
  const all = await scene(t);
  await tagImage();
  for (const { name, state, code: problem, what, cause, undo } of obstacles) {
    const workspacePath = await started(all, name, taggedImage);
    await all.hub.client.stop(workspacePath);
    await cause(all);
    const since = performance.now();
    const { code, stderr } = await oratorio(all.place, ['up', workspacePath, '--no-follow']);
    t.not(code, 0, name);
    t.match(stderr, what, `${name}: the command names the reason`);
    await named(all, since, problem, { name, state, what, next: /oratorio up / });
    await undo(all);
    t.match(await oratorio(all.place, ['up', workspacePath, '--no-follow']), { code: 0 }, `${name}: it starts again`);
    await all.hub.client.stop(workspacePath);
    t.same(await containers(), [], `${name}: no container is left`);
  }
  await all.hub.shutdown();
});
