/** A directory whose `init` ends between any two changes of the file system, as by a kill. */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import t from 'tap';
import { packageRoot } from '../../src/lib/index.ts';

t.test('an init that is killed at any moment leaves no part of a file, and can be repeated', async (t) => {
  // The source: in a bundle the functions of the file system cannot be replaced.
  const fixture = join(packageRoot(), 'test/fixtures/process/stops-init.ts');
  const args = ['--conditions=development', '--disable-warning=ExperimentalWarning', fixture, t.testdir()];
  const { stdout } = await promisify(execFile)(process.execPath, args);
  const { stops, problems } = JSON.parse(stdout);
  t.same(problems, []);
  t.ok(stops >= 8, `control: the init was stopped at ${stops} places`);
});
