/** Git outside of the sandbox runs nothing that a sandboxed command has written. */
import fc from 'fast-check';
import t from 'tap';
import { Rooms } from '../../../src/agent/index.ts';
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

t.test('commits work in each layout, and what git reads keeps its content', { skip: !isAvailable }, async (t) => {
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
