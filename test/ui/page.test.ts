/** The built page: its size, the origins it names, and forbidden constructs. */
import { globSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { budget, faultsOf, weighPage } from '../../scripts/page-budget.ts';
import { builtPage } from './built-page.ts';

const directory = await builtPage(t.testdir());
// Once: brotli at its highest quality takes a second.
const weight = weighPage(directory);

t.test('the built page stays within its budget and names no other origin', async (t) => {
  t.same(faultsOf(weight), []);
  t.ok(weight.initialScripts > 5_000, 'the scripts that come first were found');
  t.ok(weight.everything > weight.initialScripts);
});

t.test('the document has neither scripts nor styles of its own', async (t) => {
  t.notMatch(readFileSync(join(directory, 'index.html'), 'utf8'), / style=|<style|<script>/);
});

t.test('a page beyond its budget, or one that names another origin, is reported', async (t) => {
  const heavy = { ...weight, initialScripts: budget.initialScripts + 1, everything: budget.everything + 1 };
  t.equal(faultsOf(heavy).length, 2);
  const other = t.testdir({
    'index.html': '<script src="a.js"></script>',
    'a.js': 'fetch("https://cdn.example.com/x.js")',
  });
  t.match(faultsOf(weighPage(other)), [/a\.js: https:\/\/cdn\.example\.com/]);
  writeFileSync(join(other, 'a.js'), 'document.createElementNS("http://www.w3.org/2000/svg", "g")');
  t.same(faultsOf(weighPage(other)), []);
});

t.test(
  'large views have scripts of their own, lists share one, and the licences of the libraries are included',
  async (t) => {
    const names = [...weight.files.keys()];
    for (const view of ['lists', 'sessions', 'actors', 'chat']) {
      t.ok(
        names.some((name) => name.startsWith(join('assets', `${view}-`)) && name.endsWith('.js')),
        view,
      );
    }
    const notices = readFileSync(join(directory, 'licenses.txt'), 'utf8');
    for (const library of ['preact', '@preact/signals', '@tanstack/virtual-core', 'superjson'])
      t.match(notices, library);
  },
);

t.test('no source of the page creates HTML, scripts or styles from text', async (t) => {
  const forbidden =
    /innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|EventSource\(|srcdoc/i;
  const guilty = globSync('src/ui/**/*.{ts,tsx}').filter((file) => forbidden.test(readFileSync(file, 'utf8')));
  t.same(guilty, []);
});
