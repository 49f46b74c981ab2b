/** A machine whose clock is an hour late: its times are those of this machine in the list. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { eventually, temporaryDirectory } from '../hub/harness.ts';
import { oratorioJson } from './harness.ts';
import { makeMachines } from './ssh-machine.ts';

t.setTimeout(600_000);

const lateMs = 3_600_000;
const lateClock = `const Real = Date; globalThis.Date = class extends Real {
  constructor(...args) { if (args.length === 0) super(Real.now() - ${lateMs}); else super(...args); }
  static now() { return Real.now() - ${lateMs}; }
};`;

t.test('times of a machine with a wrong clock are shown in the time of this machine', async (t) => {
  const late = join(temporaryDirectory(t), 'late.cjs');
  writeFileSync(late, lateClock);
  const { here, there, program } = await makeMachines(t, { env: { NODE_OPTIONS: `--require=${late}` } });
  await oratorioJson(here, 'hosts', 'add', 'ssh://box', '--name', 'build', '--program', program);
  const began = Date.now();
  await oratorioJson(here, 'up', `build:${there.workspace('site')}`);
  const row = await eventually(async () => {
    const [found] = await oratorioJson(here, 'list', '--host', 'build');
    return found?.state === 'running' ? found : undefined;
  }, 'the workspace runs');
  t.ok(Math.abs(Date.parse(row.lastStartedAt) - began) < lateMs / 2, row.lastStartedAt);
});
