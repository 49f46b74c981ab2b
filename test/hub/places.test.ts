/** Choosing the place of a workspace: it is checked before anything stops, saved before anything starts, and reported by the command line. */
import { writeFileSync } from 'node:fs';
import t, { type Test } from 'tap';
import { pageToken } from '../../src/supervise/index.ts';
import { runInProcess } from '../cli/in-process.ts';
import { type FakeEngine, fakeEngine } from '../places/fake-engine.ts';
import { eventually, makeWorkspace, request, startTestHub, temporaryDirectory } from './harness.ts';

const image = 'there:1';

/** A home that uses an engine with one image. */
async function scene(t: Test) {
  const engine = await fakeEngine(t);
  engine.answer = (request, response) => {
    if (request.startsWith('GET /images/') && !request.includes('there'))
      response.writeHead(404).end('{"message":"no such image"}');
    else response.end(request === 'GET /containers/json' ? '[]' : '{}');
  };
  const home = temporaryDirectory(t, 'oratorio-home-');
  const Container = { Engine: engine.socket, Image: image, AllowRoot: true };
  writeFileSync(`${home}/config.json`, JSON.stringify({ Place: { Container } }), { mode: 0o600 });
  return { engine, home, workspacePath: makeWorkspace(t) };
}

const asked = ({ requests }: FakeEngine, request: string) => requests.includes(request);

t.test('regression: a place that cannot be used stops no running server, and is not chosen', async (t) => {
  const { engine, home, workspacePath } = await scene(t);
  const hub = await startTestHub(t, { home });
  const { pid, incarnation } = await hub.ensure(workspacePath);
  const place = { kind: 'container', image: 'missing:1' };
  for (const action of ['restart', 'ensure']) {
    const { status, body } = await hub.call('POST', `/v1/appservers/${action}`, { workspacePath, place });
    t.equal(status, 409, action);
    t.match(body, { error: { code: 'imageMissing', message: /missing:1.*The agent server was not changed\.$/ } });
  }
  t.match(await hub.record(workspacePath), { state: 'running', pid, incarnation });
  const moved = await runInProcess(home, 'place', workspacePath, 'container', '--image', 'missing:1');
  t.match(moved, { stderr: /missing:1.*was not changed/ });
  t.match(await hub.record(workspacePath), { state: 'running', pid, incarnation });
  const { body } = await hub.call('POST', '/v1/appservers/restart', { workspacePath });
  t.match(body, { state: 'running' }, 'the next start is where the last one was');
  t.notOk(asked(engine, 'POST /containers/create'));
});

t.test(
  'regression: a place that is requested for a running server is announced, and holds for its next start',
  async (t) => {
    const { home, workspacePath } = await scene(t);
    const hub = await startTestHub(t, { home });
    const { pid } = await hub.ensure(workspacePath);
    const words = ['up', workspacePath, '--no-follow', '--in'];
    t.match(await runInProcess(home, ...words, 'container', '--network', 'none'), {
      code: 0,
      stderr: /keeps its place until its next start\. To move it now: oratorio restart/,
    });
    t.match(await hub.record(workspacePath), { state: 'running', pid });
    t.notMatch(await runInProcess(home, ...words, 'local'), { stderr: /keeps its place/ });
  },
);

t.test('regression: a chosen place outlives a Hub that dies before the first start', async (t) => {
  const { engine, home, workspacePath } = await scene(t);
  const first = await startTestHub(t, { home });
  const { answer } = engine;
  engine.answer = (request, response, incoming) => {
    // The first request of the start itself.
    if (request === 'GET /containers/json') first.child.kill('SIGKILL');
    else answer(request, response, incoming);
  };
  const place = { kind: 'container', image, network: 'none' };
  await t.rejects(first.ensure(workspacePath, { place }));
  engine.answer = answer;
  engine.requests.length = 0;
  const next = await startTestHub(t, { home });
  next.call('POST', '/v1/appservers/ensure', { workspacePath }).catch(() => undefined);
  await eventually(
    () => asked(engine, 'POST /containers/create') || undefined,
    'the next Hub starts it in a container',
  );
});

t.test('the token of the page cannot choose a place by a restart', async (t) => {
  const { home, workspacePath } = await scene(t);
  const hub = await startTestHub(t, { home });
  await hub.ensure(workspacePath);
  const page = { ...hub.lock, token: pageToken(home) };
  const place = { kind: 'local' };
  t.match(await request(page, 'POST', '/v1/appservers/restart', { workspacePath, place }), {
    status: 403,
    body: { error: { code: 'scopeMissing' } },
  });
});
