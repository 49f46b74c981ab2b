/** A machine whose clock is an hour late: its times are those of this machine in the list. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { eventually } from '../hub/harness.ts';
import { command, oratorioJson } from './harness.ts';
import { makeMachines } from './ssh-machine.ts';

t.setTimeout(600_000);

const lateMs = 3_600_000;

t.test('times of a machine with a wrong clock are shown in the time of this machine', async (t) => {
  const machines = await makeMachines(t);
  const { here, there, program } = machines;
  const late = join(there.root, 'late.cjs');
  writeFileSync(
    late,
    `const Real = Date; globalThis.Date = class extends Real {
      constructor(...args) { if (args.length === 0) super(Real.now() - ${lateMs}); else super(...args); }
      static now() { return Real.now() - ${lateMs}; }
    };`,
  );
  const variables = Object.entries({ ...there.env, NODE_OPTIONS: `--require=${late}` });
  machines.install(
    `exec env -i "SSH_CONNECTION=$SSH_CONNECTION" ${variables.map(([name, value]) => `${name}='${value}'`).join(' ')} '${process.execPath}' '${command}' "$@"`,
  );
  await oratorioJson(here, 'hosts', 'add', 'ssh://box', '--name', 'build', '--program', program);
  const began = Date.now();
  await oratorioJson(here, 'up', `build:${there.workspace('site')}`);
  const row = await eventually(async () => {
    const [found] = await oratorioJson(here, 'list', '--host', 'build');
    return found?.state === 'running' ? found : undefined;
  }, 'the workspace runs');
  t.ok(Math.abs(Date.parse(row.lastStartedAt) - began) < lateMs / 2, row.lastStartedAt);
});
