/** Podman: a user without root on a rootless engine, then the tests of places as root. */
import { join } from 'node:path';
import t from 'tap';
import { killEngine } from './engine.ts';
import { movesThereAndBack, plainUser } from './plain-user.ts';
import { makePodman } from './podman.ts';
import { variable } from './variables.ts';

const socketOf = (directory: string): string => join(directory, 'engine.sock');
const addressOf = (directory: string): string => `unix://${socketOf(directory)}`;

await t.test('a user without root runs workspaces in containers of a rootless engine', async (t) => {
  const user = await plainUser(t);
  const directory = join(user.directory, 'podman');
  await makePodman({ directory, user });
  t.teardown(() => killEngine(directory));
  process.env['DOCKER_HOST'] = addressOf(directory);
  const engine = socketOf(directory);
  await movesThereAndBack(t, user, {
    ...{ engine, network: 'bridge', version: /podman 4.*, rootless/, uidInside: /\b0\b/ },
  });
  for (const part of ['', '-engine', '-faults']) await user.runTests(t, engine, `places${part}.stack.ts`);
});

const directory = join(variable('directory'), 'podman');
await makePodman({ directory });
process.env['DOCKER_HOST'] = addressOf(directory);
process.once('exit', () => killEngine(directory));
await import('./places.stack.ts');
