import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { lastChanges, openChange } from '../../../src/deploy/apply/index.ts';
import { defaults } from '../../../src/deploy/defaults.ts';
import { DeployError } from '../../../src/deploy/errors.ts';
import { layoutOf, stackFiles } from '../../../src/deploy/layout.ts';
import type { Plan } from '../../../src/deploy/stack-plan.ts';
import { apply, installed, journalOf, linesOf, newCase, recover, stateOf, temporaryDirectory } from './helpers.ts';
import { plans, secret } from './plans.ts';

const modeOf = (path: string): number => statSync(path).mode & 0o7777;

t.test('a plan is carried out in full under any umask, and existing results stay', async (t) => {
  const umask = process.umask(0o077);
  t.teardown(() => process.umask(umask));
  const made = newCase(temporaryDirectory(t));
  const { outcome, events } = await apply(made, 'init');
  if (outcome.state !== 'done') return t.fail(outcome.failure.message);
  t.strictSame(outcome.reveals, ['AGENT_TOKEN']);
  t.ok(outcome.changed.includes('writeFile:.env'));
  t.notOk(outcome.changed.some((key) => key.startsWith('check')));
  const { stack } = made.engine;
  t.equal(modeOf(join(stack, stackFiles.env)), 0o600);
  t.equal(modeOf(join(stack, stackFiles.compose)), 0o644);
  t.equal(modeOf(join(stack, stackFiles.workspace)), 0o750);
  t.equal(modeOf(join(stack, stackFiles.secrets)), 0o700);
  t.strictSame(Object.keys(made.engine.world.services), ['agent', 'backend']);
  const phases = events.flatMap((event) => (event.type === 'phase' ? [`${event.phase} ${event.state}`] : []));
  t.strictSame(phases.slice(0, 4), ['ports begun', 'ports done', 'files begun', 'files done']);
  t.ok(events.some((event) => event.type === 'output' && event.line === 'Cloning octo/a'));

  const again = await apply(made, 'init');
  if (again.outcome.state !== 'done') return t.fail(again.outcome.failure.message);
  t.strictSame(again.outcome.reveals, []);
  t.notOk(
    again.outcome.changed.some((key) => /File|Directory|clone/.test(key)),
    'nothing is written twice',
  );
  const kept = again.events.flatMap((event) => (event.type === 'step' && event.state === 'kept' ? [event.key] : []));
  t.ok(kept.includes('writeFile:.env') && kept.includes('clone:workspace/octo__a'));
});

t.test('the journal is private, records each step with hashes, and holds no secret', async (t) => {
  const made = await installed(t);
  const lines: string[] = [];
  await apply(made, 'enable', { onJournal: () => void lines.splice(0, lines.length, ...linesOf(made)) });
  t.equal(modeOf(journalOf(made)), 0o600);
  const text = lines.join('\n');
  t.match(text, /"doing".*"writeFile:\.env".*"hash":"[0-9a-f]{64}"/);
  t.notMatch(text, secret);
  t.notMatch(text, /sk-model-key/);
  t.equal(linesOf(made).length, 2, 'afterwards a line for each change');
  t.match(lastChanges(layoutOf(made.engine.stack), 5), [
    { command: 'webhook enable', outcome: 'done', failure: null },
    { command: 'init', outcome: 'done' },
  ]);
  t.equal(openChange(layoutOf(made.engine.stack)), null);
});

t.test('after a failure at any step, each change is undone and the same containers run again', async (t) => {
  const changes = { enable: [], disable: ['enable'], upgrade: [] } as const;
  for (const [name, before] of Object.entries(changes) as [keyof typeof changes, readonly 'enable'[]][]) {
    const made = await installed(t, ...before);
    const was = stateOf(made);
    const keys: string[] = [];
    const collect = (key: string) => void keys.push(key);
    const probe = await installed(t, ...before);
    await apply(probe, name, { before: collect });
    for (const failing of keys) {
      const { outcome, events } = await apply(made, name, { before: failAt(failing) });
      t.match(outcome, { state: 'undone', failure: { code: 'engineFailed', message: /no such luck/ } });
      const { images: _, ...world } = stateOf(made).world;
      const { images: __, ...wasWorld } = was.world;
      t.strictSame({ ...stateOf(made), world }, { ...was, world: wasWorld }, `${name} failing at ${failing}`);
      t.equal(events.at(-1)?.type, 'undone');
      t.equal(openChange(layoutOf(made.engine.stack)), null);
    }
    t.ok(keys.length > 0);
  }
});

/** Fails the first time only, so that the undo works. */
function failAt(key: string): (at: string) => void {
  let isOver = false;
  return (at) => {
    if (isOver || at !== key) return;
    isOver = true;
    throw new DeployError('engineFailed', 'no such luck');
  };
}

t.test('the saved state is put back only when something newer ran on it', async (t) => {
  const made = await installed(t);
  const calls: string[] = [];
  const note = (fail: string) => {
    const failing = failAt(fail);
    return (key: string) => {
      calls.push(key);
      failing(key);
    };
  };
  await apply(made, 'upgrade', { before: note('saveState') });
  t.notOk(calls.includes('restoreState'), 'not when it was not saved whole');
  calls.length = 0;
  await apply(made, 'upgrade', { before: note('awaitHealthy:agent,backend') });
  t.strictSame(calls.slice(calls.indexOf('awaitHealthy:agent,backend') + 1), [
    'removeServices:agent,backend',
    'restoreState',
    'start:agent,backend',
    'awaitHealthy:agent,backend',
  ]);
  t.equal(made.engine.world.database, 'v1');
});

t.test('a failed first set-up is saved, blocks other commands, and can be continued', async (t) => {
  const made = newCase(temporaryDirectory(t));
  const { outcome } = await apply(made, 'init', { before: failAt('clone:workspace/octo__b') });
  t.match(outcome, { state: 'kept', failure: { message: 'no such luck' } });
  const layout = layoutOf(made.engine.stack);
  t.match(openChange(layout), { command: 'init', onFailure: 'keep', failure: { code: 'engineFailed' } });
  t.match(lastChanges(layout, 1), [{ command: 'init', outcome: 'unfinished' }]);
  await t.rejects(recover(made, 'add-repo'), { code: 'unfinishedChange', hint: /oratorio server init/ });
  await t.rejects(apply(made, { ...plans.init(layout.directory), command: 'add-repo' }), { code: 'unfinishedChange' });
  t.equal(await recover(made, 'init'), null);
  const again = await apply(made, 'init');
  t.match(again.outcome, { state: 'done', reveals: ['AGENT_TOKEN'] }, 'with the secret that nobody was shown');
  t.match(lastChanges(layout, 5), [{ command: 'init', outcome: 'done', failure: null }]);
});

t.test('a step that cannot be undone is reported, and the others are undone', async (t) => {
  const made = await installed(t);
  const { outcome } = await apply(made, 'enable', {
    before: (key) => {
      if (key === 'start:backend' || key === 'removeServices:webhook-gateway') throw new Error(`out of order: ${key}`);
    },
  });
  t.match(outcome, {
    state: 'undoFailed',
    failure: {
      code: 'undoFailed',
      message: /start:backend failed.*Not every change.*start:webhook-gateway.*out of order: removeServices.*restart/s,
      hint: /\.server\/backup/,
    },
  });
  t.notOk(readdirSync(made.engine.stack).includes(stackFiles.caddyfile), 'files are back');
  t.notMatch(readFileSync(join(made.engine.stack, stackFiles.env), 'utf8'), secret);
  t.match(lastChanges(layoutOf(made.engine.stack), 1), [{ outcome: 'undoFailed' }]);
  t.match(
    (await apply(made, 'enable')).outcome,
    { state: 'done', reveals: ['WEBHOOK_SECRET'] },
    'and enabling it again brings order',
  );
});

t.test('a secret that stayed behind a failed undo is still shown once', async (t) => {
  const made = await installed(t);
  const { env } = layoutOf(made.engine.stack);
  const before = (key: string) => {
    if (key !== 'start:backend') return;
    // A changed backup is not restored.
    const { backups } = layoutOf(made.engine.stack);
    const [change] = readdirSync(backups).sort().slice(-1);
    const kept = readdirSync(join(backups, change ?? '')).find((name) => name.startsWith('file-.env'));
    writeFileSync(join(backups, change ?? '', kept ?? ''), 'garbage');
    throw new Error('no');
  };
  t.match((await apply(made, 'enable', { before })).outcome, { state: 'undoFailed' });
  t.match(readFileSync(env, 'utf8'), secret, 'it is still there');
  t.match((await apply(made, 'upgrade')).outcome, { state: 'done', reveals: [] }, 'other commands do not show it');
  t.match((await apply(made, 'enable')).outcome, { state: 'done', reveals: ['WEBHOOK_SECRET'] });
  t.match((await apply(made, 'enable')).outcome, { state: 'done', reveals: [] });
});

t.test('secrets are shown before the journal records the end', async (t) => {
  const made = await installed(t);
  const shown: string[] = [];
  const showSecrets = (reveals: readonly string[]) => {
    shown.push(...reveals);
    t.match(openChange(layoutOf(made.engine.stack)), { command: 'webhook enable' });
    throw new Error('nobody reads');
  };
  await t.rejects(apply(made, 'enable', { showSecrets }), { message: 'nobody reads' });
  t.match((await apply(made, 'enable')).outcome, { reveals: ['WEBHOOK_SECRET'] });
  t.strictSame(shown, ['WEBHOOK_SECRET']);
});

t.test('a cancelled change ends its current step and undoes the others', async (t) => {
  const made = await installed(t);
  const was = stateOf(made);
  const controller = new AbortController();
  let isAtWork = false;
  const before = async (key: string, signal: AbortSignal): Promise<void> => {
    if (isAtWork) t.fail(`${key} while another step is at work`);
    if (key !== 'checkGateway') return;
    isAtWork = true;
    controller.abort();
    t.ok(signal.aborted);
    // A process takes its time to end.
    await new Promise((resolve) => setTimeout(resolve, 20));
    isAtWork = false;
    throw new Error('killed');
  };
  const { outcome } = await apply(made, 'enable', { before, signal: controller.signal });
  t.match(outcome, { state: 'undone', failure: { code: 'cancelled' } });
  t.strictSame(stateOf(made), was);
  await t.rejects(apply(made, 'enable', { signal: controller.signal }), { code: 'cancelled' });
  t.equal(openChange(layoutOf(made.engine.stack)), null, 'cancelled before the first step is nothing begun');
});

t.test('cancelling a first set-up keeps the completed steps', async (t) => {
  const made = newCase(temporaryDirectory(t));
  const controller = new AbortController();
  const before = (key: string) => void (key === 'checkComposition' && controller.abort());
  const { outcome } = await apply(made, 'init', { before, signal: controller.signal });
  t.match(outcome, { state: 'kept', failure: { code: 'cancelled' } });
  t.match((await apply(made, 'init')).outcome, { state: 'done', reveals: ['AGENT_TOKEN'] });
});

t.test('an error without a code gets one, with its cause and without secrets', async (t) => {
  const made = await installed(t);
  const cause = new TypeError('bug');
  const fail = (error: Error) => (key: string) => {
    if (key === 'checkGateway') throw error;
  };
  const { outcome } = await apply(made, 'enable', { before: fail(cause) });
  t.match(outcome, { failure: { code: 'gatewayInvalid', message: 'The step checkGateway failed: bug' } });
  t.equal(outcome.state === 'undone' && outcome.failure.cause, cause);
  const leaky = await apply(made, 'enable', { before: fail(new Error(`${secret} is wrong`)) });
  t.match(leaky.outcome, { failure: { code: 'gatewayInvalid', message: /\[redacted\] is wrong/ } });
  t.notMatch(JSON.stringify([leaky.outcome, leaky.events]), secret);
  t.notMatch(readFileSync(journalOf(made), 'utf8'), secret);
});

t.test('a half-done change of another command is taken back before', async (t) => {
  const made = await installed(t);
  const was = stateOf(made);
  await dieAt(made, 'start:backend');
  t.match(openChange(layoutOf(made.engine.stack)), { command: 'webhook enable', onFailure: 'undo', failure: null });
  await t.rejects(apply(made, 'upgrade'), { code: 'unfinishedChange' });
  t.equal(await recover(made, 'webhook enable'), null, 'the same command goes on with it');
  t.match(await recover(made, 'upgrade'), { command: 'webhook enable', outcome: 'undone' });
  t.strictSame(stateOf(made), was);
  t.equal(await recover(made, 'upgrade'), null);
  t.match((await apply(made, 'upgrade')).outcome, { state: 'done' });
});

/** Leaves a change as a kill does: its process ends without another entry. */
async function dieAt(made: Awaited<ReturnType<typeof installed>>, key: string): Promise<void> {
  await new Promise<void>((resolve) => {
    const before = (at: string) => (at === key ? new Promise<void>(() => resolve()) : undefined);
    void apply(made, 'enable', { before });
  });
}

t.test('undoing a change backs up a file that was edited since', async (t) => {
  const made = await installed(t);
  const was = stateOf(made);
  await dieAt(made, 'checkGateway');
  const { env, backups } = layoutOf(made.engine.stack);
  writeFileSync(env, 'MINE=1\n');
  await recover(made, 'upgrade');
  t.strictSame(stateOf(made), was);
  const kept = readdirSync(backups, { recursive: true, encoding: 'utf8' }).find((name) => name.includes('found-.env'));
  t.equal(readFileSync(join(backups, kept ?? ''), 'utf8'), 'MINE=1\n');
});

t.test('backups are private and hold the former files, and only the last ones stay', async (t) => {
  const made = await installed(t, 'enable');
  const { backups } = layoutOf(made.engine.stack);
  for (let round = 0; round < 4; round += 1) {
    await apply(made, 'disable');
    await apply(made, 'enable');
  }
  const changes = readdirSync(backups).sort();
  t.equal(changes.length, defaults.keptBackups);
  t.equal(modeOf(backups), 0o700);
  const files = changes.flatMap((change) =>
    readdirSync(join(backups, change)).map((name) => join(backups, change, name)),
  );
  t.ok(files.some((file) => file.includes('file-Caddyfile')));
  t.notOk(files.some((file) => file.endsWith('reserve')));
  for (const change of changes) t.equal(modeOf(join(backups, change)), 0o700);
  for (const file of files) t.equal(modeOf(file), 0o600, file);
});

t.test('the last 200 changes are remembered', async (t) => {
  const made = newCase(temporaryDirectory(t));
  const record = { change: 'x', command: 'restart', begunAt: 'a', at: 'b', outcome: 'done', failure: null, owed: [] };
  const lines = Array.from({ length: 230 }, (_, at) =>
    JSON.stringify({ type: 'ended', record: { ...record, change: `${at}` } }),
  );
  writeFileSync(journalOf(made), `${lines.join('\n')}\n`, { mode: 0o600 });
  await apply(made, 'init');
  t.equal(linesOf(made).length, 200);
  const changes = lastChanges(layoutOf(made.engine.stack), 2);
  t.match(changes, [{ command: 'init' }, { change: '229' }]);
});

t.test('a plan whose machine would pass one of its phases by is not begun', async (t) => {
  const made = await installed(t);
  const enable = plans.enable(made.engine.stack);
  const odd: Plan = { ...enable, phases: [...enable.phases, { name: 'health', title: 'Waiting', steps: [] }] };
  await t.rejects(apply(made, odd), TypeError);
  await t.rejects(apply(made, { ...enable, phases: [...enable.phases].reverse() }), TypeError);
  t.equal(openChange(layoutOf(made.engine.stack)), null);
});

t.test('an undone change restores the permissions and contents of directories', async (t) => {
  const made = newCase(temporaryDirectory(t));
  const { stack } = made.engine;
  mkdirSync(join(stack, 'there'), { mode: 0o755 });
  const was = stateOf(made);
  const phases: Plan['phases'] = [
    {
      name: 'files',
      title: 'Files',
      steps: [
        { do: 'makeDirectory', path: 'there', mode: 0o700 },
        { do: 'makeDirectory', path: 'new', mode: 0o750 },
        { do: 'makeDirectory', path: 'new/below', mode: 0o711 },
        { do: 'checkComposition' },
      ],
    },
  ];
  const plan: Plan = { command: 'restart', directory: stack, onFailure: 'undo', reveals: [], notes: [], phases };
  const { outcome } = await apply(made, plan, {
    before: () => {
      t.equal(modeOf(join(stack, 'there')), 0o700);
      t.equal(modeOf(join(stack, 'new/below')), 0o711);
      throw new Error('no');
    },
  });
  t.equal(outcome.state, 'undone');
  t.strictSame(stateOf(made), was);
});
