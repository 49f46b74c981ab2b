/** Git outside of the sandbox runs nothing that a sandboxed command has written. */
import { existsSync, lstatSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import t from 'tap';
import { Rooms } from '../../../src/agent/index.ts';
import { until } from '../../supervise/helpers.ts';
import { attacks, batches, layouts, runBatch, Scene, work } from './git-attacks.ts';

const seed = process.env['ORATORIO_TEST_SEED'] === 'random' ? {} : { seed: 20_261_128 };
const isAvailable = await (async () => {
  const rooms = new Rooms(process.env);
  return rooms.areAvailable().finally(() => rooms.close());
})();

t.test('each attack works without the sandbox: the control', { skip: !isAvailable }, async (t) => {
  for (const [position, attack] of attacks.entries()) {
    const scene = new Scene('off');
    try {
      const layout = attack.control ?? 'plain';
      const executed = await runBatch(scene, {
        repositories: [{ layout, name: 'app', attacks: [position], isCollected: false }],
      });
      t.ok(executed.length > 0, `${attack.name} on ${layout}`);
    } finally {
      await scene.close();
    }
  }
});

t.test('commits work in each layout, and configuration of git keeps its content', { skip: !isAvailable }, async (t) => {
  const scene = new Scene('required');
  t.teardown(() => scene.close());
  for (const [at, [title, make]] of Object.entries(layouts).entries()) {
    if (title === 'bare' || title === 'no repository') continue;
    const { directory } = make(scene, `r${at}`);
    const { text, isError } = await scene.command(
      `cd ${directory} && echo x > new && git add new && git commit -q -m second && git log --oneline && git gc -q && git stash list`,
    );
    t.notOk(isError, `${title}: ${text}`);
    work(scene, directory, true);
    t.equal(scene.git(directory, 'status'), 0, title);
  }
});

t.test('a pointer that a background process makes is set aside while it runs', { skip: !isAvailable }, async (t) => {
  const scene = new Scene('required');
  t.teardown(() => scene.close());
  const make = layouts['hooks are a link to a missing directory'];
  const { directory, git } = make?.(scene, 'app') ?? { directory: '', git: '' };
  const isAside = (name: string) =>
    readdirSync(join(scene.workspace, git)).some((each) => each.startsWith(`${name}.removed-`));
  // The link comes back before or after the command makes a directory in its place.
  const isLink = () => lstatSync(join(scene.workspace, git, 'hooks'), { throwIfNoEntry: false })?.isSymbolicLink();
  const running = scene.command(
    `mkdir -p evil; echo "$PWD/evil" > ${git}/commondir; rm -f ${git}/hooks; mkdir ${git}/hooks; sleep 3600`,
  );
  await until('the pointer is aside', async () => isAside('commondir') && isLink() === true);
  t.notOk(existsSync(join(scene.workspace, git, 'commondir')));
  t.equal(scene.git(directory, 'status'), 0);
  scene.interrupt();
  await running.catch(() => undefined);
});

t.test(
  'regression: H41 git of the user runs none of 2,000 programs that commands have planted',
  { skip: !isAvailable },
  async (t) => {
    await fc.assert(
      fc.asyncProperty(batches, async (batch) => {
        const scene = new Scene('required');
        try {
          const executed = await runBatch(scene, batch);
          if (executed.length > 0) throw new Error(`ran: ${executed.join('\n')}`);
        } finally {
          await scene.close();
        }
      }),
      { ...seed, numRuns: 10, endOnFailure: true },
    );
    t.pass('none ran');
  },
);
