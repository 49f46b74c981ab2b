/** The pages about deployment name commands, options and checks that exist. */
import { readFileSync } from 'node:fs';
import t from 'tap';
import { parse } from '../../src/cli/parse.ts';

const pageOf = (name: string): string => readFileSync(new URL(`../../docs/${name}`, import.meta.url), 'utf8');
const pages = ['deployment.md', 'operations.md'];

/** Command lines of a page, in lines of shell and between backticks. */
function commandLines(text: string): string[] {
  const joined = text.replaceAll('\\\n', ' ');
  const blocks = [...joined.matchAll(/^```sh\n([\s\S]*?)^```/gm)].flatMap(([, block = '']) => block.split('\n'));
  const inline = [...joined.replaceAll(/^```[\s\S]*?^```/gm, '').matchAll(/`([^`\n]+)`/g)].map(([, code = '']) => code);
  return [...blocks, ...inline]
    .map((line) => line.replace(/ +#.*$/, '').trim())
    .filter((line) => /^oratorio \w/.test(line));
}

for (const page of pages) {
  t.test(`${page}: every command line parses`, (t) => {
    const lines = commandLines(pageOf(page)).filter((line) => line !== 'oratorio server');
    t.ok(lines.length > 10);
    for (const line of lines) t.doesNotThrow(() => parse(line.split(/\s+/).slice(1)), line);
    t.end();
  });

  t.test(`${page}: every link to a section resolves`, (t) => {
    for (const [, file = '', section = ''] of pageOf(page).matchAll(/\]\(([\w-]+\.md)?#([\w-]+)\)/g)) {
      const titles = [...pageOf(file || page).matchAll(/^#+ (.*)$/gm)].map(([, title = '']) => slugOf(title));
      t.ok(titles.includes(section), `${file}#${section}`);
    }
    t.end();
  });
}

t.test('every group of checks of the doctor has a section', (t) => {
  const table = readFileSync(new URL('../../src/deploy/doctor/table.ts', import.meta.url), 'utf8');
  const groups = new Set([...table.matchAll(/row\(['`]([a-z]+)\./g)].map(([, group = '']) => group));
  t.ok(groups.size > 10);
  const titles = [...pageOf('operations.md').matchAll(/^### (.*)$/gm)].map(([, title = '']) => slugOf(title));
  for (const group of groups) t.ok(titles.includes(`doctor-${group}`), group);
  t.end();
});

/** Anchor that GitHub makes of a heading. */
function slugOf(title: string): string {
  return title
    .toLowerCase()
    .replaceAll(/[^\w\- ]/g, '')
    .replaceAll(' ', '-');
}
