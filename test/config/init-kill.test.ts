/** A directory whose `init` ends between any two changes of the file system, as by a kill. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import t from 'tap';
import { program } from '../programs.ts';

t.test('an init that is killed at any moment leaves no part of a file, and can be repeated', async (t) => {
  const args = ['--disable-warning=ExperimentalWarning', program('test/fixtures/process/stops-init.ts'), t.testdir()];
  const { stdout } = await promisify(execFile)(process.execPath, args);
  const { stops, problems } = JSON.parse(stdout);
  t.same(problems, []);
  t.ok(stops >= 8, `control: the init was stopped at ${stops} places`);
});
