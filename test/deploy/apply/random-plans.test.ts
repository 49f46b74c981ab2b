import { chmodSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import fc from 'fast-check';
import t from 'tap';
import { marked } from '../../../src/deploy/files/index.ts';
import type { Plan, Step } from '../../../src/deploy/stack-plan.ts';
import { apply, newCase, recover, stateOf, temporaryDirectory } from './helpers.ts';

const paths = ['a', 'b.json', 'd/c', 'd/e/f', '.env'] as const;
const modes = fc.constantFrom(0o600, 0o640, 0o644, 0o400);
const content = fc.string({ unit: 'grapheme', maxLength: 60 });
const start = fc.record({
  services: fc.subarray(['agent', 'backend'] as const, { minLength: 1 }),
  recreate: fc.boolean(),
});

const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({
    do: fc.constant('writeFile' as const),
    path: fc.constantFrom(...paths),
    mode: modes,
    content: content.map(marked),
    isSecret: fc.boolean(),
    owner: fc.constantFrom('ours' as const, 'theirs' as const),
  }),
  fc.record({ do: fc.constant('removeFile' as const), path: fc.constantFrom(...paths) }),
  fc.record({
    do: fc.constant('makeDirectory' as const),
    path: fc.constantFrom('d', 'new', 'new/er'),
    mode: fc.constantFrom(0o700, 0o750),
  }),
  fc
    .constantFrom('x', 'y')
    .map((path) => ({ do: 'clone' as const, repository: `octo/${path}`, url: 'https://forge.example', path })),
  start.map((each) => ({ do: 'start' as const, ...each })),
  start.map(({ services }) => ({ do: 'removeServices' as const, services })),
  fc.constant({ do: 'saveState' as const }),
  fc.constant({ do: 'checkComposition' as const }),
);

/** Files from before: they may be removed, as they carry our mark. */
const before = fc.record({
  files: fc.dictionary(fc.constantFrom(...paths), fc.tuple(content.map(marked), modes)),
  running: fc.subarray(['agent', 'backend'] as const),
});

/** Where it ends early: when a line of this number is on disk, by a failure, or by silence as after a kill. */
const fault = fc.record({ line: fc.integer({ min: 1, max: 40 }), isKill: fc.boolean() });

t.test('undoing any plan that ended anywhere restores every file, permission and service', async (t) => {
  const directory = temporaryDirectory(t);
  let count = 0;
  await fc.assert(
    fc.asyncProperty(
      before,
      fc.array(step, { minLength: 1, maxLength: 10 }),
      fault,
      async (there, steps, { line, isKill }) => {
        count += 1;
        const made = newCase(join(directory, String(count)));
        const { stack } = made.engine;
        mkdirSync(join(stack, 'd/e'), { recursive: true });
        for (const [path, [text, mode]] of Object.entries(there.files)) {
          mkdirSync(dirname(join(stack, path)), { recursive: true });
          writeFileSync(join(stack, path), text);
          chmodSync(join(stack, path), mode);
        }
        const effects = made.engine.effects();
        const options = { signal: new AbortController().signal, onLine: () => {} };
        await effects.start({ do: 'start', services: there.running, recreate: true }, options);
        const was = stateOf(made);
        const plan: Plan = {
          ...{ command: 'upgrade', directory: stack, onFailure: 'undo', reveals: [], notes: [] },
          phases: [{ name: 'files', title: 'All', steps: [...steps, { do: 'checkGateway' }] }],
        };
        let lines = 0;
        let isSilent = false;
        const ended = new Promise<void>((resolve, reject) => {
          const onJournal = () => {
            lines += 1;
            if (lines !== line) return;
            if (!isKill) throw new Error('a fault');
            isSilent = true;
            resolve();
            return new Promise<void>(() => {});
          };
          const fail = (key: string) => {
            if (key === 'checkGateway') throw new Error('at last');
          };
          apply(made, plan, { onJournal, before: fail }).then(() => resolve(), reject);
        }).catch((error: unknown) => {
          // The fault of the first line comes before there is a change to take back in this run.
          if (line !== 1) throw error;
        });
        await ended;
        await recover(made, 'restart');
        t.strictSame(stateOf(made), was, `ended ${isSilent ? 'by a kill' : 'by a failure'} at line ${line}`);
        rmSync(made.directory, { recursive: true });
      },
    ),
    { numRuns: 150 },
  );
});
