/** Takes a turn back, and kills itself at a step. Arguments: workspace, store, step (0: none). Prints how many steps there are. */
import { chmodSync, mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Engine } from '../../src/checkpoints/engine.ts';
import { defaultLimits } from '../../src/checkpoints/limits.ts';

const [root = '', directory = '', killAt = '0'] = process.argv.slice(2);
const turn = { thread: 'thread', turn: 'turn_001' };
let steps = 0;
const onStep = (): void => {
  steps += 1;
  if (steps === Number(killAt)) process.kill(process.pid, 'SIGKILL');
};

const engine = new Engine({
  root,
  directory,
  limits: { ...defaultLimits, freeBytes: 0 },
  git: undefined,
  onStep,
});
await engine.mark([{ edge: 'start', ...turn }]);
const at = (path: string) => join(root, path);
for (let number = 0; number < 10; number += 1) {
  rmSync(at(`deleted/${number}`));
  writeFileSync(at(`changed/${number}`), `changed ${number} by the turn`);
  mkdirSync(at(`made/${number}`), { recursive: true });
  writeFileSync(at(`made/${number}/file`), 'made');
}
rmSync(at('deleted'), { recursive: true });
rmSync(at('link'));
symlinkSync('elsewhere', at('link'));
chmodSync(at('mode'), 0o600);
await engine.mark([{ edge: 'end', ...turn }]);
const prepared = await engine.prepare({
  ...{ thread: 'thread', turns: ['turn_001'], paths: undefined, force: false },
  conversation: ['turn_001'],
});
if (prepared.number === undefined) throw new Error('the restore was refused');
const left = engine.apply(prepared.number);
await engine.conclude(prepared.number, left);
engine.close();
process.stdout.write(String(steps));
