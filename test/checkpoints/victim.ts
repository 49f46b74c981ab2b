/** Works on checkpoints, and kills itself at a step. Arguments: kind of work, workspace, place of the stores, step. */
import { type Kind, work } from './killed-work.ts';

const [kind = 'restore', root = '', stores = '', killAt = '0'] = process.argv.slice(2);
let steps = 0;

await work(kind as Kind, { root, stores }, () => {
  steps += 1;
  if (steps === Number(killAt)) process.kill(process.pid, 'SIGKILL');
});
