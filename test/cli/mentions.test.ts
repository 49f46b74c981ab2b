/** `@file` in prompts of `chat` and `exec`. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import fc from 'fast-check';
import t, { type Test } from 'tap';
import { partsOf } from '../../src/cli/mentions.ts';
import { temporaryDirectory } from '../supervise/helpers.ts';

function workspace(t: Test): string {
  const path = temporaryDirectory(t);
  mkdirSync(join(path, 'src'));
  for (const name of ['src/a.ts', 'shot.png', 'two words.md', 'b.js']) writeFileSync(join(path, name), '');
  return path;
}

const text = (words: string) => ({ type: 'text', text: words });

t.test('files, directories and images that exist become references, everything else stays text', async (t) => {
  const path = workspace(t);
  const file = (name: string) => ({ type: 'fileRef', path: join(path, name), displayPath: name });
  const image = { type: 'localImage', path: join(path, 'shot.png'), fileName: 'shot.png' };
  for (const [prompt, expected] of [
    ['look at @src/a.ts, please', [text('look at '), file('src/a.ts'), text(', please')]],
    ['@src/a.ts', [file('src/a.ts')]],
    ['(@b.js) and @src/', [text('('), file('b.js'), text(') and '), file('src')]],
    ['what is @shot.png?', [text('what is '), image, text('?')]],
    ['read @"two words.md"!', [text('read '), file('two words.md'), text('!')]],
    ['mail a@b.js', [text('mail a@b.js')]],
    ['@b.js/ @shot.png/', [text('@b.js/ @shot.png/')]],
    ['@nothing @../etc @/etc/passwd @ @.', [text('@nothing @../etc @/etc/passwd @ @.')]],
    ['/review @b.js', [text('/review @b.js')]],
    ['line\n@b.js\nline', [text('line\n'), file('b.js'), text('\nline')]],
  ] as const) {
    t.same(partsOf(prompt, path), expected, prompt);
  }
});

t.test(
  'images that are dropped into a typed prompt become parts, wherever they are; other paths stay text',
  async (t) => {
    const path = workspace(t);
    const elsewhere = temporaryDirectory(t);
    const [plain, spaced] = [join(elsewhere, 'a.PNG'), join(elsewhere, 'my shot.jpeg')];
    for (const file of [plain, spaced, join(elsewhere, 'notes.txt')]) writeFileSync(file, '');
    const image = (file: string) => ({ type: 'localImage', path: file, fileName: basename(file) });
    for (const [prompt, expected] of [
      [`${plain} what is this?`, [image(plain), text(' what is this?')]],
      [`see ${plain}, please`, [text('see '), image(plain), text(', please')]],
      [
        `'${spaced}' @b.js`,
        [image(spaced), text(' '), { type: 'fileRef', path: join(path, 'b.js'), displayPath: 'b.js' }],
      ],
      [`"${spaced}"`, [image(spaced)]],
      [spaced.replace(' ', '\\ '), [image(spaced)]],
      [`${plain} ${plain}`, [image(plain), text(' '), image(plain)]],
      [
        `${elsewhere}/notes.txt ${elsewhere}/none.png x${plain}`,
        [text(`${elsewhere}/notes.txt ${elsewhere}/none.png x${plain}`)],
      ],
      [`/review ${plain}`, [text(`/review ${plain}`)]],
    ] as const) {
      t.same(partsOf(prompt, path, true), expected, prompt);
      const isMention = prompt.includes('@');
      if (!isMention) t.same(partsOf(prompt, path), [text(prompt)], 'a prompt of a script names no images outside');
    }
  },
);

t.test('property: no word of a prompt is lost', async (t) => {
  const path = workspace(t);
  // A path has several spellings with slashes, and a reference has the shortest.
  const other = fc.string().filter((word) => !word.includes('/'));
  const words = fc.array(fc.oneof(fc.constantFrom('@b.js', '@shot.png', ' ', '\n', '@', '"'), other), {
    maxLength: 12,
  });
  fc.assert(
    fc.property(words, (all) => {
      const prompt = all.join('');
      const back = partsOf(prompt, path).map((part) =>
        part.type === 'text' ? part.text : part.type === 'fileRef' ? `@${part.displayPath}` : '@shot.png',
      );
      t.equal(back.join(''), prompt.replaceAll(/(?<=^|[\s(])@"(b\.js|shot\.png)"/g, '@$1'));
    }),
    { numRuns: 300 },
  );
});
