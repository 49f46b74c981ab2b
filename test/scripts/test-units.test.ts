import t from 'tap';
import { testUnits } from '../../scripts/test-units.ts';

const passes = 'test/fixtures/tap/passes.ts';
const fails = 'test/fixtures/tap/fails.ts';
const dies = 'test/fixtures/tap/dies.ts';

t.test('files of a folder share a process, but for those that reach for what a process has once', async (t) => {
  t.strictSame(testUnits([passes, fails, dies], {}), [
    { name: 'test/fixtures/tap (together)', files: [passes, fails] },
    { name: dies, files: [dies] },
  ]);
});

t.test('a file that takes long, and one that runs alone, has a process of its own', async (t) => {
  const others = 'test/fixtures/tap/throws.ts';
  t.strictSame(testUnits([passes, fails, others], { [passes]: 20 }, [others]), [
    { name: passes, files: [passes] },
    { name: fails, files: [fails] },
    { name: others, files: [others] },
  ]);
});
