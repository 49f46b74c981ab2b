import { getEventListeners } from 'node:events';
import t, { type Test } from 'tap';
import { type CheckResult, type DoctorOptions, examine, verdictOf } from '../../../src/deploy/doctor/index.ts';
import { DeployError } from '../../../src/deploy/errors.ts';
import { ask, askFor, canaries, FakeEngine, givesNothingAway, makeStack, remove } from './harness.ts';

const stack = (t: Test, hasIngress = false) => {
  const layout = makeStack(t, { hasIngress });
  return { layout, engine: new FakeEngine(layout) };
};
const all = async (options: DoctorOptions): Promise<CheckResult[]> => {
  const results: CheckResult[] = [];
  for await (const result of examine(options)) results.push(result);
  return results;
};

t.test('results come in the order of the table, each with all that is shown', async (t) => {
  const { layout, engine } = stack(t, true);
  const results = await all({
    directory: layout.directory,
    env: {},
    engine,
    isOffline: true,
    gateway: { httpPort: 1, httpsPort: 1 },
  });
  const ids = results.map(({ id }) => id);
  t.equal(new Set(ids).size, ids.length, 'no id is there twice');
  t.strictSame(ids.slice(0, 3), ['runtime.engine', 'runtime.compose', 'runtime.git']);
  t.ok(ids.indexOf('key.file') < ids.indexOf('repo.acme/shop.checkout'));
  t.ok(ids.indexOf('app.events') < ids.indexOf('ingress.host'));
  for (const result of results) {
    t.match(result, { title: /\S/, saw: /\S/, docs: /^operations\.md#doctor-[a-z]+$/, durationMs: Number }, result.id);
    t.match(result.saw, /^\P{Cc}+$/u, result.id);
    if (result.status === 'fail') t.ok(result.hint, `${result.id} says what to do`);
  }
  givesNothingAway(t, results);
});

t.test('only checks whose ids or prefixes are given run', async (t) => {
  const { layout, engine } = stack(t);
  t.strictSame(
    [...(await ask(t, layout, { engine, only: ['env', 'host.disk'] })).keys()],
    ['env.quoting', 'env.required', 'env.override', 'host.disk'],
  );
  t.equal((await ask(t, layout, { engine, only: ['repo.acme/shop'] })).size, 5);
  await t.rejects(ask(t, layout, { engine, only: ['ingress', 'nothing', 'env'] }), {
    code: 'invalidInput',
    message: 'There is no check called ingress, nothing for this stack.',
    hint: /env\.quoting/,
  });
});

t.test('a check that throws is one that failed, with the message cleaned of secrets', async (t) => {
  const { layout, engine } = stack(t);
  engine.answers.set('ps', () => Promise.reject(new Error(`token ${canaries.ORATORIO_AGENT_TOKEN} \u001b[2J`)));
  t.match(await askFor(t, 'container.agent', layout, { engine }), {
    status: 'fail',
    saw: /^token \[redacted\]/,
    hint: null,
  });
  engine.answers.set('ps', () => Promise.reject(new DeployError('engineFailed', 'It broke.', 'Mend it.')));
  t.match(await askFor(t, 'container.agent', layout, { engine }), {
    status: 'fail',
    saw: 'It broke.',
    hint: 'Mend it.',
  });
});

t.test('a check that does not end fails, and does not delay the others', async (t) => {
  const { layout, engine } = stack(t);
  engine.answers.set('ps', () => new Promise(() => {}));
  const results = await ask(t, layout, { engine, only: ['container.agent', 'files.present'], timeoutMs: 100 });
  t.match(results.get('container.agent'), { status: 'fail', saw: 'There was no answer within 100 ms.' });
  t.match(results.get('files.present'), { status: 'ok' });
});

t.test('the first results are there while a later check still works', async (t) => {
  const { layout, engine } = stack(t);
  const { promise, resolve } = Promise.withResolvers<never>();
  engine.answers.set('ps', () => promise);
  const results = examine({
    directory: layout.directory,
    env: {},
    engine,
    isOffline: true,
    only: ['files', 'container.agent'],
  });
  t.match(await results.next(), { done: false, value: { id: 'files.present' } });
  for (const id of ['files.modes', 'files.owners', 'files.marker', 'files.pair'])
    t.match(await results.next(), { value: { id } });
  const last = results.next();
  resolve({ exitCode: 0, stdout: '', stderr: '' } as never);
  t.match(await last, { value: { id: 'container.agent', status: 'fail', saw: 'There is no container.' } });
});

t.test('an abort ends the checks, and the remaining ones are skipped', async (t) => {
  const { layout, engine } = stack(t);
  const stop = new AbortController();
  engine.answers.set('ps', () => {
    stop.abort();
    return new Promise(() => {});
  });
  const results = await ask(t, layout, { engine, signal: stop.signal });
  t.match(results.get('container.agent'), { status: 'skip', saw: /stopped/ });
  t.match(results.get('app.events'), { status: 'skip' });
  t.equal(getEventListeners(stop.signal, 'abort').length, 0, 'nobody listens any more');
});

t.test('checks end when their results are no longer read', async (t) => {
  const { layout, engine } = stack(t);
  const { promise, resolve } = Promise.withResolvers<AbortSignal | undefined>();
  const { run } = engine;
  engine.run = (args, options) => {
    if (args[0] !== 'ps') return run.call(engine, args, options);
    resolve(options.signal);
    return new Promise(() => {});
  };
  for await (const { id } of examine({ directory: layout.directory, env: {}, engine, isOffline: true }))
    if (id === 'env.quoting') break;
  t.equal((await promise)?.aborted, true);
});

t.test('a directory that is not a stack is reported as a finding', async (t) => {
  const { layout, engine } = stack(t);
  remove(layout.directory);
  const results = await ask(t, layout, { engine });
  t.match(results.get('files.present'), { status: 'fail' });
  t.match(results.get('env.required'), { status: 'skip' });
  t.match(results.get('config.file'), { status: 'fail', saw: 'oratorio.config.json is missing.' });
});

t.test('a fact that several checks need is read once', async (t) => {
  const { layout, engine } = stack(t);
  await ask(t, layout, { engine, only: ['container', 'ports', 'mount'] });
  t.equal(engine.commands.filter((each) => each.startsWith('ps')).length, 1);
});

t.test('the verdict counts, and only failures are not well', async (t) => {
  const result = { id: 'a', title: 'A', docs: '', saw: '', hint: null, durationMs: 0 };
  const of = (...statuses: CheckResult['status'][]) => verdictOf(statuses.map((status) => ({ ...result, status })));
  t.strictSame(of('ok', 'warn', 'skip', 'ok'), { counts: { ok: 2, warn: 1, fail: 0, skip: 1 }, isWell: true });
  t.equal(of('ok', 'fail').isWell, false);
});
