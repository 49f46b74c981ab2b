/** Engines that answer wrongly, endlessly or half: the state of a container stays right, and nothing is asked without end. */
import type { ServerResponse } from 'node:http';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { createActor } from 'xstate';
import { processActor } from '../../src/hub/actors/process-actor.ts';
import { watchReach } from '../../src/places/engine-reach.ts';
import { ContainerPlace, EngineApi, type PlacedProcess } from '../../src/places/index.ts';
import { eventually, temporaryDirectory } from '../hub/harness.ts';
import { details, type FakeEngine, fakeEngine } from './fake-engine.ts';

const marker = '0d6c2f0e-0000-4000-8000-000000000001';
const labels = {
  'dev.oratorio.home': 'home',
  'dev.oratorio.workspace': 'key',
  'dev.oratorio.incarnation': marker,
};
const running = details(labels, true);
const ended = details(labels, false, 7);

async function followed(t: Test, engine: FakeEngine): Promise<PlacedProcess> {
  const home = temporaryDirectory(t);
  const found = await new ContainerPlace(engine.socket, 'home').find({
    ...{ home, workspacePath: join(home, 'site'), workspaceKey: 'key', logDirectory: join(home, 'logs'), marker },
    ...{ handle: { kind: 'container', engine: engine.socket, id: 'x' }, pid: 1, ports: [] },
  });
  t.teardown(() => found.detach());
  return found;
}

const countOf = ({ requests }: FakeEngine, wanted: string) => requests.filter((each) => each === wanted).length;
const inspection = 'GET /containers/x/json';
const waiting = 'POST /containers/x/wait';

t.test('regression: the end of a container is seen after answers that are not understood', async (t) => {
  const answers = [
    (response: ServerResponse) => response.end('<html>'),
    (response: ServerResponse) => response.writeHead(403).end('{"message":"not allowed"}'),
    (response: ServerResponse) => response.writeHead(500).end(),
    // The connection ends in the middle of the body.
    (response: ServerResponse) => {
      response.writeHead(200, { 'content-length': 1_000 });
      response.write('{"Id":');
      setImmediate(() => response.destroy());
    },
    (response: ServerResponse) => response.end(ended),
  ];
  const engine = await fakeEngine(t);
  engine.answer = (request, response) => {
    if (request === inspection) answers[Math.min(countOf(engine, inspection), answers.length) - 1]?.(response);
    else response.end('OK');
  };
  t.match(await (await followed(t, engine)).exited, { exitCode: 7, observed: true });
});

t.test('the end of a container names its cause outside of the process', async (t) => {
  const killed = JSON.parse(details(labels, false, 137));
  const outOfMemory = { ...killed, State: { ...killed.State, OOMKilled: true }, HostConfig: { Memory: 536_870_912 } };
  const ends = [
    [outOfMemory, /^exceeded the memory limit of its container \(512 MiB, Place\.Container\.MemoryMiB\)$/],
    [{ ...outOfMemory, HostConfig: {} }, /^exceeded the memory limit of its container$/],
    // A command of the agent was ended, not the agent server.
    [{ ...outOfMemory, State: { ...outOfMemory.State, ExitCode: 7 } }, undefined],
    [killed, undefined],
    [null, /^ended because its container was removed$/],
  ] as const;
  for (const [body, cause] of ends) {
    const engine = await fakeEngine(t);
    const { answer } = engine;
    engine.answer = (request, response, incoming) => {
      if (request === inspection && body) response.end(JSON.stringify(body));
      else answer(request, response, incoming);
    };
    const { cause: found } = await (await followed(t, engine)).exited;
    if (cause) t.match(found, cause);
    else t.equal(found, undefined);
  }
});

t.test('a container that this Hub ends and that is gone has no other cause', async (t) => {
  const engine = await fakeEngine(t);
  let isAsked = false;
  engine.answer = (request, response) => {
    if (request.includes('/kill')) isAsked = true;
    if (request === inspection && !isAsked) response.end(running);
    else if (request === waiting) setTimeout(() => response.end('{"StatusCode":0}'), 50);
    else if (request === inspection) response.writeHead(404).end('{"message":"no such container"}');
    else response.end('OK');
  };
  const child = await followed(t, engine);
  child.terminate();
  t.match(await child.exited, { exitCode: null, cause: undefined });
});

t.test('regression: an engine that answers each wait at once is not asked without end', async (t) => {
  const engine = await fakeEngine(t);
  let isEnded = false;
  engine.answer = (request, response) => {
    if (request === waiting) {
      isEnded = countOf(engine, waiting) === 4;
      response.end(isEnded ? '{}' : '{"StatusCode":0}');
    } else response.end(request === inspection ? (isEnded ? ended : running) : 'OK');
  };
  const begun = performance.now();
  t.match(await (await followed(t, engine)).exited, { exitCode: 7 });
  t.ok(performance.now() - begun >= 1_000, 'there is a pause before each further wait');
});

t.test('regression: a container that the engine never removes is reported', async (t) => {
  const engine = await fakeEngine(t);
  engine.answer = (request, response) => {
    if (request === 'GET /containers/json')
      response.end(JSON.stringify([{ Id: 'x'.repeat(64), Names: [`/oratorio-${marker}`], Labels: labels }]));
    else if (request.startsWith('DELETE')) response.writeHead(409).end('{"message":"removal is already in progress"}');
    else response.end(running);
  };
  await t.rejects(new ContainerPlace(engine.socket, 'home', 100).endLeftovers('key'), {
    name: 'PlaceError',
    kind: 'placeUnavailable',
    message: /does not remove the container x{12}\..*docker rm --force x{12},/,
  });
});

t.test('containers with the label of another home, or with our labels and another name, are not touched', async (t) => {
  const engine = await fakeEngine(t);
  const Names = [`/oratorio-${marker}`];
  // The first two: a label filter that an engine does not apply. The third: from an image that was made from a container of ours.
  const listed = [
    { Id: 'x', Names, Labels: { ...labels, 'dev.oratorio.home': 'other' } },
    { Id: 'y', Names },
    { Id: 'z', Names: ['/kind_moser'], Labels: labels },
  ];
  engine.answer = (_, response) => response.end(JSON.stringify(listed));
  t.equal(await new ContainerPlace(engine.socket, 'home').endLeftovers(), 0);
  t.same(engine.requests, ['GET /containers/json']);
});

t.test('regression: a Hub that releases a container whose engine went away in its end continues', async (t) => {
  const engine = await fakeEngine(t);
  engine.answer = (_, response) => {
    if (engine.requests.length === 1) response.end(ended);
    else response.destroy();
  };
  const process = await followed(t, engine);
  const source = { spawn: async () => process, adopt: () => null, onGone() {}, onUnverified() {} };
  const input = { incarnation: 1, mode: 'spawn', workspacePath: '/site' } as const;
  const actor = createActor(
    processActor(() => source),
    { input },
  );
  actor.start();
  await eventually(() => engine.requests.length > 2 || undefined, 'the engine is asked again');
  actor.stop();
  // A rejection that nothing handles would fail this test.
  await new Promise((resolve) => setImmediate(resolve));
});

t.test('an engine that does not read standard input is reported, and the start ends', async (t) => {
  const engine = await fakeEngine(t, { readsInput: false });
  await t.rejects(new EngineApi(engine.socket, 1_000).write('x', 'x'.repeat(4_000_000)), {
    name: 'EngineUnreachableError',
    message: /no input was read within 1000 ms/,
  });
});

t.test('an engine that stops answering during a start is reported once, and so is its return', async (t) => {
  const engine = await fakeEngine(t);
  let isAway = true;
  engine.answer = (_, response) => (isAway ? response.destroy() : response.end('OK'));
  const reach = watchReach(new EngineApi(engine.socket), 10);
  t.teardown(() => reach.end());
  const seen: boolean[] = [];
  reach.listen((isLost) => seen.push(isLost));
  await eventually(() => engine.requests.length > 2 || undefined, 'it is asked several times');
  isAway = false;
  await eventually(() => seen.length > 1 || undefined, 'it is back');
  t.same(seen, [true, false]);
});
