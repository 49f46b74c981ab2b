/** The documents about containers and scaling: each statement names a test or a benchmark that exists, and the set-up has three commands. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { root } from '../../scripts/toolchain.mjs';

const read = (file: string): string => readFileSync(join(root, file), 'utf8');

/** Last cells of the rows of each table with a column of tests. */
function evidenceIn(page: string): string[] {
  const tables = page.match(/(?:^\|.*\n)+/gm) ?? [];
  return tables
    .filter((table) => /\| Test( or figure)? \|\n/.test(table))
    .flatMap((table) => table.trim().split('\n').slice(2))
    .map((row) => row.split('|').at(-2) ?? '');
}

for (const [file, least] of [
  ['docs/places.md', 25],
  ['docs/scaling.md', 5],
] as const) {
  t.test(`${file}: each row of a table with tests names a test or a benchmark that exists`, (t) => {
    const cells = evidenceIn(read(file));
    t.ok(cells.length >= least, `${cells.length} rows`);
    for (const cell of cells) {
      const names = [...cell.matchAll(/`([^`]+)`/g)].map(([, name = '']) => name);
      t.ok(names.length > 0, cell);
      for (const name of names) t.ok(existsSync(join(root, name.includes('/') ? name : `bench/${name}.ts`)), name);
    }
    t.end();
  });
}

t.test('docs/places.md: the set-up has three commands', (t) => {
  const [, commands = ''] = /## Set up a container[\s\S]*?```sh\n([\s\S]*?)```/.exec(read('docs/places.md')) ?? [];
  t.strictSame(
    commands
      .trim()
      .split('\n')
      .map((line) => /# (\d)\./.exec(line)?.[1]),
    ['1', '2', '3'],
  );
  t.end();
});
