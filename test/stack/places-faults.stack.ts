/** Engines that hang in the middle of a start or of a stop, and a full disk: record and command line report it in time, and all is well afterwards. */
import { existsSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import t, { type Test } from 'tap';
import { runInProcess } from '../cli/in-process.ts';
import { must } from '../deploy/must.ts';
import { eventually, makeWorkspace } from '../hub/harness.ts';
import { signalEngine } from './engine.ts';
import {
  containers,
  engineDirectory,
  engineSocket,
  homeOf,
  hubOf,
  output,
  place,
  settled,
  smallDirectory,
  turn,
} from './places-scene.ts';
import { images } from './variables.ts';

/** Longest time until a fault is reported. */
const reportMs = 20_000;
const signal = (name: NodeJS.Signals) => signalEngine(engineDirectory(), name);

/** Stops the engine until the returned function is called. */
function hang(t: Test): () => void {
  signal('SIGSTOP');
  t.teardown(() => signal('SIGCONT'));
  return () => signal('SIGCONT');
}

t.test(
  'an engine that hangs in the middle of a start is reported in time, and one container runs afterwards',
  async (t) => {
    const home = homeOf(t);
    const hub = await hubOf(t, home);
    for (const afterMs of [0, 100, 250, 500]) {
      const workspace = makeWorkspace(t, { Supervision: { BackoffBaseMs: 50 } });
      const started = hub.call('POST', '/v1/appservers/ensure', { workspacePath: workspace, place });
      await pause(afterMs);
      const goOn = hang(t);
      const hung = performance.now();
      const reported = await Promise.race([
        started.then(({ body }) => body.error?.message ?? 'running'),
        eventually(async () => {
          const { problems, lastError } = await hub.record(workspace).catch(() => ({ problems: [], lastError: null }));
          return problems?.find(({ code }) => code === 'placeLost')?.what ?? lastError ?? undefined;
        }, 'the record reports it'),
      ]);
      if (reported !== 'running') {
        t.match(reported, /engine.* does not answer/, `after ${afterMs} ms`);
        t.ok(performance.now() - hung < reportMs, `in time after ${afterMs} ms`);
      }
      goOn();
      await started;
      await eventually(() => hub.ensure(workspace, { place }).catch(() => undefined), 'it runs');
      t.equal((await containers()).length, 1, `one container after ${afterMs} ms`);
      await hub.call('POST', '/v1/appservers/stop', { workspacePath: workspace });
      t.same(await containers(), []);
    }
    await hub.shutdown();
  },
);

t.test(
  'an engine that hangs in a stop is reported in time on the command line, and the stop ends afterwards',
  async (t) => {
    const home = homeOf(t);
    const hub = await hubOf(t, home);
    const workspace = makeWorkspace(t);
    await hub.ensure(workspace, { place });
    const goOn = hang(t);
    const hung = performance.now();
    const stopped = hub.call('POST', '/v1/appservers/stop', { workspacePath: workspace });
    await settled(hub, workspace, ({ problems }) => problems.some(({ code }) => code === 'placeLost'));
    t.ok(performance.now() - hung < reportMs);
    t.match(await runInProcess(home, 'list'), { stdout: /engine does not answer/ });
    goOn();
    t.match(await stopped, { status: Number });
    await eventually(async () => (await containers()).length === 0, 'the container ends');
    await hub.shutdown();
  },
);

t.test(
  'a full disk refuses a start with its reason, does not end a container, and is forgotten when there is room',
  async (t) => {
    const home = await smallDirectory(t);
    const Container = { Engine: engineSocket(), Image: images.base, Network: 'none', AllowRoot: true };
    writeFileSync(join(home, 'config.json'), JSON.stringify({ Place: { Container } }), { mode: 0o600 });
    const hub = await hubOf(t, home);
    const [first, second] = [makeWorkspace(t), makeWorkspace(t)];
    const { pid, incarnation } = await hub.ensure(first, { place });
    const filling = join(home, 'filling');
    await must('dd', ['if=/dev/zero', `of=${filling}`, 'bs=4k'], { timeoutMs: 60_000 }).catch(() => undefined);
    const { body } = await hub.call('POST', '/v1/appservers/ensure', { workspacePath: second, place });
    t.match(body, { error: { message: /ENOSPC|no space/i } });
    t.match(await hub.record(first), { state: 'running', pid, incarnation });
    t.equal((await containers()).length, 1);
    rmSync(filling);
    t.notOk(existsSync(filling));
    await eventually(() => hub.ensure(second, { place }).catch(() => undefined), 'it runs when there is room');
    t.match(output(await turn(await hub.record(first), 'run: echo room')), /room/);
    await hub.shutdown();
    t.same(await containers(), []);
  },
);
