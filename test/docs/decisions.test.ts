import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { root } from '../../scripts/toolchain.mjs';

const page = readFileSync(join(root, 'docs/decisions.md'), 'utf8').replaceAll('\r\n', '\n');
const entries = page.split(/\n{2,}/).filter((paragraph) => paragraph.startsWith('**'));
const titleOf = (entry: string): string => entry.split('**')[1] ?? '';

t.test('each decision has a title, a date, a status and its cost', async (t) => {
  t.ok(entries.length > 20, 'the entries are found');
  for (const entry of entries) {
    t.match(entry, /^\*\*[^*]+\.\*\* \*\d{4}-\d{2}-\d{2}, (?:accepted|replaced by “[^”]+”)\.\*/, titleOf(entry));
    t.match(entry, /\bCosts\b/, `${titleOf(entry)} names its cost`);
  }
});

t.test('a replaced decision names an entry', async (t) => {
  const titles = new Set(entries.map((entry) => titleOf(entry).replace(/\.$/, '')));
  for (const [, title = ''] of page.matchAll(/replaced by “([^”]+)”/g)) t.ok(titles.has(title), title);
});
