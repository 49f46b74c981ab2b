import { appendFileSync, readFileSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import fc from 'fast-check';
import t from 'tap';
import { recordOf } from '../../../src/deploy/apply/entries.ts';
import { lastChanges, openChange } from '../../../src/deploy/apply/index.ts';
import { hashOf } from '../../../src/deploy/apply/stack-files.ts';
import { keyed, stepKey } from '../../../src/deploy/apply/step-keys.ts';
import { layoutOf } from '../../../src/deploy/layout.ts';
import { apply, type Case, installed, journalOf, newCase, stateOf, temporaryDirectory } from './helpers.ts';
import { plans } from './plans.ts';

/** A journal in the middle of an enabling: the process that wrote it is never heard of again. */
async function half(made: Case): Promise<void> {
  await new Promise<void>((resolve) => {
    const before = (key: string) => (key === 'checkGateway' ? new Promise<void>(() => resolve()) : undefined);
    void apply(made, 'enable', { before });
  });
}

t.test('without a journal there is no change', async (t) => {
  const { engine } = newCase(temporaryDirectory(t));
  t.equal(openChange(layoutOf(engine.stack)), null);
  t.strictSame(lastChanges(layoutOf(engine.stack), 5), []);
});

t.test('a last line that was torn anywhere is ignored, and the next run appends after it', async (t) => {
  const made = await installed(t);
  await half(made);
  const layout = layoutOf(made.engine.stack);
  const whole = readFileSync(layout.journal);
  const lastLine = whole.lastIndexOf('\n', whole.length - 2) + 1;
  t.ok(openChange(layout)?.done.includes('checkComposition'));
  for (let at = lastLine; at < whole.length; at += 1) {
    truncateSync(layout.journal, at);
    if (openChange(layout)?.command !== 'webhook enable') t.fail(`torn at ${at}`);
    writeFileSync(layout.journal, whole);
  }
  truncateSync(layout.journal, lastLine + 10);
  t.equal((await apply(made, 'enable')).outcome.state, 'done');
  t.match(lastChanges(layout, 1), [{ command: 'webhook enable', outcome: 'done' }]);
});

t.test('an incomplete last line of the journal is ignored', async (t) => {
  const made = await installed(t);
  await half(made);
  const { journal } = layoutOf(made.engine.stack);
  appendFileSync(journal, Buffer.alloc(40));
  t.equal(openChange(layoutOf(made.engine.stack))?.command, 'webhook enable');
  appendFileSync(journal, '\n');
  t.equal(openChange(layoutOf(made.engine.stack))?.command, 'webhook enable');
  t.equal((await apply(made, 'enable')).outcome.state, 'done');
});

t.test('an invalid line in the middle of the journal is an error, and no step runs', async (t) => {
  const made = await installed(t);
  const journal = journalOf(made);
  writeFileSync(journal, `{"type":"of a later version"}\n${readFileSync(journal, 'utf8')}`);
  const was = stateOf(made);
  t.throws(() => openChange(layoutOf(made.engine.stack)), { code: 'fileFailed', message: /Line 1 of .*journal/ });
  await t.rejects(apply(made, 'enable'), { code: 'fileFailed' });
  t.strictSame(stateOf(made), was);
});

t.test('a journal that was open to others is private again', async (t) => {
  const made = newCase(temporaryDirectory(t));
  writeFileSync(journalOf(made), '', { mode: 0o666 });
  await apply(made, 'init');
  t.equal(statSync(journalOf(made)).mode & 0o777, 0o600);
});

t.test('every step has a name, and two steps of one kind have different names', async (t) => {
  const steps = Object.values(plans).flatMap((make) => make('/stack').phases.flatMap((phase) => phase.steps));
  for (const step of steps) t.ok(stepKey(step).startsWith(step.do));
  const plan = plans.enable('/stack');
  const twice = keyed({ ...plan, phases: [...plan.phases, ...plan.phases] }).flatMap((phase) => phase.steps);
  t.equal(new Set(twice.map(({ key }) => key)).size, twice.length);
  t.ok(twice.some(({ key }) => key === 'checkGateway#2'));
});

t.test('the journal contains no file contents and no passwords of addresses', (t) => {
  fc.assert(
    fc.property(fc.string({ minLength: 12 }), fc.stringMatching(/^[a-zA-Z0-9]{8,20}$/), (content, password) => {
      const write = { do: 'writeFile', path: 'a', mode: 0o600, content, isSecret: true, owner: 'theirs' } as const;
      const clone = {
        do: 'clone',
        repository: 'octo/a',
        url: `https://me:P4ss-${password}@forge.example/a.git`,
        path: 'a',
      } as const;
      const written = JSON.stringify([recordOf(write, hashOf), recordOf(clone, hashOf)]);
      return !written.includes(JSON.stringify(content)) && !written.includes(`P4ss-${password}`);
    }),
    { numRuns: 200 },
  );
  t.match(recordOf({ do: 'clone', repository: 'octo/a', url: 'git@forge.example:octo/a.git', path: 'a' }, hashOf), {
    url: 'git@forge.example:octo/a.git',
  });
  t.end();
});
