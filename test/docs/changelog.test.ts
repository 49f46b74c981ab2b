import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { root } from '../../scripts/toolchain.mjs';

const lines = readFileSync(join(root, 'CHANGELOG.md'), 'utf8').split('\n');
const kinds = ['Added', 'Changed', 'Fixed', 'Security'];
const parts = ['Hub', 'Agent', 'Page', 'Reviews', 'Server'];

t.test('the changelog has one line of at most 160 characters for each change', async (t) => {
  const entries = lines
    .slice(lines.findIndex((line) => line.startsWith('## ')))
    .filter((line) => !/^(?:#.*)?$/.test(line));
  t.ok(entries.length > 50);
  for (const entry of entries) t.ok(entry.startsWith('- ') && entry.length <= 160, entry);
});

t.test('the changelog groups changes by kind, and those by part, in one order', async (t) => {
  let kind = -1;
  let part = -1;
  for (const line of lines) {
    const [, level = '', name = ''] = /^(##+) (.+)$/.exec(line) ?? [];
    if (level === '##') kind = -1;
    if (level === '###') {
      t.ok(kinds.indexOf(name) > kind, line);
      kind = kinds.indexOf(name);
      part = -1;
    }
    if (level === '####') {
      t.ok(parts.indexOf(name) > part, line);
      part = parts.indexOf(name);
    }
  }
});

t.test('each document that the changelog links to exists', async (t) => {
  const paths = lines.flatMap((line) => [...line.matchAll(/\]\(([\w./-]+)/g)].map(([, path = '']) => path));
  t.ok(paths.length > 50);
  for (const path of new Set(paths)) t.ok(existsSync(join(root, path)), path);
});
