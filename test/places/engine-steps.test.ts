/** An engine that fails at each step of a start: the start ends with a reason and a next step, and holds no port. */
import type { ServerResponse } from 'node:http';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { ContainerPlace, type ContainerSettings, EngineApi } from '../../src/places/index.ts';
import { eventually, temporaryDirectory } from '../hub/harness.ts';
import { unusedPort } from '../ports.ts';
import { details, type FakeEngine, fakeEngine } from './fake-engine.ts';

const marker = '0d6c2f0e-0000-4000-8000-000000000002';
const name = `oratorio-${marker}`;
const labels = {
  'dev.oratorio.home': 'home',
  'dev.oratorio.workspace': 'key',
  'dev.oratorio.incarnation': marker,
};
const settings: ContainerSettings = {
  ...{ engine: '', image: 'i', network: 'none', memoryMiB: 0, cpus: 0, pids: 64, mounts: [], allowRoot: true },
};

/** Requests of a start, in order, with their answers. */
const steps: ReadonlyMap<string, string> = new Map([
  ['GET /info', '{}'],
  ['POST /containers/create', '{"Id":"x"}'],
  [`POST /containers/${name}/start`, ''],
  [`GET /containers/${name}/json`, details(labels, true)],
]);

const hang = () => {};

const faults: Readonly<Record<string, { readonly fail: (response: ServerResponse) => void; readonly words: RegExp }>> =
  {
    hangs: { fail: hang, words: /does not answer: .*Start the engine, then try again/ },
    dies: { fail: (response) => response.destroy(), words: /does not answer: .*Start the engine, then try again/ },
    'has a full disk': {
      fail: (response) => response.writeHead(500).end('{"message":"no space left on device"}'),
      words: /disk of the container engine is full: no space left on device\. Free space/,
    },
  };

/** Starts a container on an engine that fails at one step, or at none. */
async function start(t: Test, failing: string, fail: (response: ServerResponse) => void) {
  const engine = await fakeEngine(t);
  engine.answer = (request, response) => {
    if (request === failing) fail(response);
    else response.end(steps.get(request) ?? '{}');
  };
  const home = temporaryDirectory(t);
  const port = await unusedPort();
  // Only a request that hangs reaches this limit.
  const answerMs = fail === hang ? 500 : 60_000;
  const place = new ContainerPlace(new EngineApi(engine.socket, answerMs), 'home');
  const starting = place.start({
    ...{ home, workspacePath: join(home, 'site'), workspaceKey: 'key', logDirectory: home, marker, settings },
    ...{ command: ['node'], program: [], environment: {}, skeleton: join(home, 'skeleton'), stdin: 'document\n' },
    ports: [{ port, isOwnersOnly: false }],
  });
  return { engine, starting, port };
}

const removals = ({ requests }: FakeEngine) => requests.filter((each) => each === `DELETE /containers/${name}`).length;

for (const [fault, { fail, words }] of Object.entries(faults)) {
  for (const step of steps.keys()) {
    t.test(
      `an engine that ${fault} at ${step.replace(name, 'NAME')} fails the start, and nothing of it is left`,
      async (t) => {
        const { engine, starting, port } = await start(t, step, fail);
        await t.rejects(starting, { name: 'PlaceError', kind: 'placeUnavailable', isRetryable: true, message: words });
        t.equal(removals(engine), 1);
        await eventually(async () => (await isFree(port)) || undefined, 'the port is free');
      },
    );
  }
}

t.test('an engine that is absent fails the start with the socket as the reason', async (t) => {
  const place = new ContainerPlace('/missing/engine.sock', 'home');
  t.match(await place.check({ settings, home: '/home/me/.oratorio' }), {
    kind: 'placeUnavailable',
    message: /missing\/engine\.sock does not answer: the socket does not exist\. Start the engine/,
  });
});

t.test('a start on an engine that works writes the launch document', async (t) => {
  const { engine, starting } = await start(t, '', () => {});
  const child = await starting;
  t.teardown(() => child.detach());
  await eventually(() => engine.input === 'document\n' || undefined, 'the document arrives');
  t.equal(removals(engine), 0);
});

/** Whether a program can listen on the port. */
async function isFree(port: number): Promise<boolean> {
  const { createServer } = await import('node:net');
  const server = createServer();
  return new Promise((resolve) => {
    server.once('error', () => resolve(false)).listen(port, '127.0.0.1', () => server.close(() => resolve(true)));
  });
}

t.test('a rootless engine runs containers as root inside, and other engines as the user of the Hub', async (t) => {
  const own = `${process.getuid?.()}:${process.getgid?.()}`;
  const cases = [
    { info: '{"SecurityOptions":["name=seccomp,profile=default"]}', User: own },
    { info: '{"SecurityOptions":["name=seccomp","name=userns"]}', User: own },
    { info: '{"SecurityOptions":["name=seccomp","name=rootless"]}', User: '0:0' },
    { info: '{"SecurityOptions":["name=seccomp"],"Rootless":false}', User: own },
    { info: '{"SecurityOptions":["name=seccomp"],"Rootless":true}', User: '0:0' },
  ];
  for (const { info, User } of cases) {
    const { engine, starting } = await start(t, 'GET /info', (response) => response.end(info));
    const started = await starting;
    t.match(JSON.parse(engine.body), { User }, info);
    started.detach();
  }
});

t.test('regression: a rootless engine of another user is refused, because it cannot open the workspace', async (t) => {
  const engine = await fakeEngine(t);
  engine.answer = (_, response) => response.end('{"Rootless":true}');
  const check = () => new ContainerPlace(engine.socket, 'home').check({ settings, home: '/home/me/.oratorio' });
  t.equal(await check(), null);
  const as = t.intercept(process, 'getuid', { value: () => 54_321 });
  t.match(await check(), { kind: 'placeRefused', message: /belongs to .*systemctl --user start podman\.socket/ });
  as.restore();
  t.equal(engine.requests.filter((request) => request === 'GET /info').length, 1, 'one question for each socket');
});

t.test('a missing image is reported with the command of the engine that pulls it', async (t) => {
  const cases = [
    ['{}', 'debian:12', /docker pull debian:12,/],
    ['{"Rootless":false}', 'debian:12', /podman pull docker\.io\/library\/debian:12,/],
    ['{"Rootless":false}', 'me/tools', /podman pull docker\.io\/me\/tools,/],
    ['{"Rootless":false}', 'ghcr.io/me/tools:1', /podman pull ghcr\.io\/me\/tools:1,/],
  ] as const;
  for (const [info, image, words] of cases) {
    const engine = await fakeEngine(t);
    engine.answer = (request, response) =>
      request === 'GET /info' ? response.end(info) : response.writeHead(404).end('{"message":"no such image"}');
    const place = new ContainerPlace(engine.socket, 'home');
    t.match(await place.check({ settings: { ...settings, image }, home: '/home/me/.oratorio' }), {
      kind: 'imageMissing',
      message: words,
    });
  }
});
