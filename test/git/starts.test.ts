import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { root } from '../../scripts/toolchain.mjs';

/** A program that is git: as a word of its own, or at the end of a shell's line. */
const start = /program: 'git'|(?:exec|execFile|execFileSync|spawn|spawnSync|run|execute)\(\s*['"`]git\b|exec git /;

t.test('every start of git has the locked environment', async (t) => {
  const files = globSync('src/**/*.ts', { cwd: root }).sort();
  const starting = files.filter((file) => start.test(readFileSync(join(root, file), 'utf8')));
  t.ok(starting.includes(join('src', 'git', 'run-git.ts')), 'the pattern finds a start');
  for (const file of starting) {
    t.match(readFileSync(join(root, file), 'utf8'), /gitEnvironment\(|reviewEnvironment\(/, file);
  }
});
