import t from 'tap';
import { testUnits } from '../../scripts/test-units.ts';

const passes = 'test/fixtures/tap/passes.ts';
const fails = 'test/fixtures/tap/fails.ts';
const dies = 'test/fixtures/tap/dies.ts';

t.test('files of a folder share a process, except those that use process-wide state', async (t) => {
  t.strictSame(testUnits([passes, fails, dies], {}), [
    { name: 'test/fixtures/tap (together)', files: [passes, fails] },
    { name: dies, files: [dies] },
  ]);
});

t.test('a file that takes long, and one that runs alone, has a process of its own', async (t) => {
  const others = 'test/fixtures/tap/throws.ts';
  t.strictSame(testUnits([passes, fails, others], { [passes]: { seconds: 20 } }, [others]), [
    { name: passes, files: [passes] },
    { name: fails, files: [fails] },
    { name: others, files: [others] },
  ]);
});

t.test('up to fifteen files that drive the page share a process and its browser', async (t) => {
  const files = ['automations', 'chat', 'chat-changes', 'events', 'inspector', 'logs', 'overview']
    .concat([
      'chat-hostile',
      'chat-long',
      'chat-reconnect',
      'review-sources',
      'review-pull',
      'review-queue',
      'sessions',
      'settings',
      'shell',
      'session-live',
    ])
    .map((name) => `test/ui/${name}.test.ts`);
  t.strictSame(testUnits(files, {}), [
    { name: 'test/ui/pages-1 (together)', files: files.slice(0, 15) },
    { name: 'test/ui/pages-2 (together)', files: files.slice(15) },
  ]);
});
