/** The glossary names types that exist, and defines each word once. */
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { root } from '../../scripts/toolchain.mjs';

const page = readFileSync(join(root, 'docs/glossary.md'), 'utf8');
const [concepts = '', names = ''] = page.split('## Names in code');
const rowsOf = (text: string): string[][] =>
  text
    .split('\n')
    .filter((line) => line.startsWith('| ') && !/^\| (?:Word|Name) \|/.test(line))
    .map((line) =>
      line
        .slice(1, -1)
        .split('|')
        .map((cell) => cell.trim()),
    );

t.test('every name in code is exported by the file beside it', (t) => {
  const rows = rowsOf(names);
  t.ok(rows.length > 5);
  for (const [quoted = '', path = ''] of rows) {
    const place = path.replaceAll('`', '');
    const files = place.endsWith('.ts') ? [place] : globSync(`${place}/*.ts`, { cwd: root });
    const source = files.map((file) => readFileSync(join(root, file), 'utf8')).join('\n');
    for (const [, name = ''] of quoted.matchAll(/`(\w+)`/g)) {
      t.match(source, new RegExp(`^export (?:async )?(?:class|function|interface|type|const) ${name}\\b`, 'm'), name);
    }
  }
  t.end();
});

t.test('every word has one definition', (t) => {
  const words = rowsOf(concepts).map(([word = '']) => word);
  t.same(words.toSorted(), [...new Set(words)].toSorted());
  t.end();
});
