/**
 * One command on a stack, as a process that kills itself: `kill-child <directory> <plan> <line> <failing step>`. Dies when
 * the line of that number (from 1) is on disk.
 */
import { appendFileSync } from 'node:fs';
import { join } from 'node:path';
import { applyPlan, withStackLock } from '../../../src/deploy/apply/index.ts';
import { layoutOf } from '../../../src/deploy/layout.ts';
import { FakeEngine } from './fake-effects.ts';
import { type PlanName, plans } from './plans.ts';

const [directory = '', name = '', line = '', failing = ''] = process.argv.slice(2);
const engine = new FakeEngine(directory);
const { signal } = new AbortController();
const plan = plans[name as PlanName](engine.stack);
let lines = 0;
let hasFailed = false;

await withStackLock(
  layoutOf(engine.stack),
  { command: plan.command, waitMs: 0, signal },
  async () =>
    await applyPlan({
      plan,
      effects: engine.effects({
        before: (key) => {
          if (hasFailed || key !== failing) return;
          hasFailed = true;
          throw new Error('it was told to fail');
        },
      }),
      observe: () => {},
      signal,
      now: () => new Date(),
      showSecrets: (reveals) => appendFileSync(join(directory, 'secrets-shown'), `${reveals.join('\n')}\n`),
      onJournal: () => {
        lines += 1;
        if (lines === Number(line)) process.kill(process.pid, 'SIGKILL');
      },
    }),
);
