import { renameSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { ProgramFile } from '../../src/appserver/program-file.ts';
import { eventually } from '../hub/harness.ts';

t.test('a program counts as replaced when another one has been in its place for a moment', async (t) => {
  const path = join(t.testdir({ 'main.cjs': 'old' }), 'main.cjs');
  const program = new ProgramFile(path);
  t.equal(program.isReplaced(), false);
  rmSync(path);
  t.equal(program.isReplaced(), false, 'a missing program cannot be started');
  writeFileSync(`${path}.new`, 'new');
  // Package managers set the times of a release.
  utimesSync(`${path}.new`, 1, 1);
  renameSync(`${path}.new`, path);
  t.equal(program.isReplaced(), false, 'the installation may not be complete yet');
  await eventually(() => program.isReplaced() || undefined, 'the new program has been there for a moment');
  t.equal(new ProgramFile(path).isReplaced(), false, 'a process of the new program');
  t.equal(new ProgramFile(join(path, 'missing')).isReplaced(), false);
});
