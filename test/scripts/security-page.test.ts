import { existsSync, globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { root } from '../../scripts/toolchain.mjs';

/** A row of docs/security.md: an id, the promise, and links to the files whose tests prove it. */
const row = /^\| (?<id>[^|]+) \| (?<promise>[^|]+) \| (?<links>\[[^|]+) \|$/gm;
const titleOf = /regression: ((?:[CHLM]\d+|edge \d+b?|image paths|docs\/performance\.md)) /g;

const read = (file: string): string => readFileSync(join(root, file), 'utf8');
const idsIn = (file: string): Set<string> => new Set([...read(file).matchAll(titleOf)].map(([, id = '']) => id));

t.test('docs/security.md names every regression test, by the id in its title, and no other', async (t) => {
  const promised = [...read('docs/security.md').matchAll(row)].flatMap(({ groups = {} }) =>
    [...(groups['links'] ?? '').matchAll(/\(\.\.\/([^)]+)\)/g)].map(([, file]) => `${groups['id']} in ${file}`),
  );
  const tested = globSync('test/**/*.ts', { cwd: root }).flatMap((file) =>
    [...idsIn(file)].map((id) => `${id} in ${file}`),
  );
  t.ok(promised.length > 40, `${promised.length} promises with a test`);
  t.same(promised.toSorted(), tested.toSorted());
});

t.test('each test that a document names as proof exists', async (t) => {
  const links = globSync('docs/*.md', { cwd: root }).flatMap((page) =>
    [...read(page).matchAll(/\]\(\.\.\/(test\/[^)#]+)\)/g)].map(([, file = '']) => ({ page, file })),
  );
  for (const page of ['security', 'tools', 'undo', 'review-backend'])
    t.ok(
      links.some((link) => link.page === `docs/${page}.md`),
      `${page} names tests`,
    );
  t.same(
    links.filter(({ file }) => !existsSync(join(root, file))),
    [],
  );
});
