/** Edits in files whose characters are decomposed, as programs on macOS write them. */
import fc from 'fast-check';
import t from 'tap';
import { applyEdits } from '../../../src/agent/tools/files/edit-apply.ts';

const seed = process.env['ORATORIO_TEST_SEED'] === 'random' ? {} : { seed: 20_261_128 };
const edit = (text: string, oldText: string, newText: string, replaceAll = false) =>
  applyEdits(text, [{ oldText, newText, replaceAll }]);
const nfd = (text: string): string => text.normalize('NFD');

t.test('composed text is found in a decomposed file, which keeps its other characters', async (t) => {
  const file = nfd('# Café\r\nGröße = 1\r\nñ 각 Å\r\n');
  const result = edit(file, 'Größe = 1', 'Größe = 2');
  t.match(result, { ok: true, differs: 'forms of accented letters' });
  t.equal(result.ok && result.text, `${nfd('# Café\r\n')}Größe = 2${nfd('\r\nñ 각 Å\r\n')}`);
  const lines = edit(file, 'Größe = 1\nñ 각 Å', 'Höhe = 1\nñ 각 Å');
  t.equal(lines.ok && lines.text, `${nfd('# Café\r\n')}Höhe = 1${nfd('\r\nñ 각 Å\r\n')}`, 'a repeated line stays');
});

t.test('decomposed text is found in a composed file', async (t) => {
  const result = edit('Größe = 1\n', nfd('Größe'), 'Höhe');
  t.equal(result.ok && result.text, 'Höhe = 1\n');
});

t.test('text that is there twice is not edited', async (t) => {
  const file = `${nfd('é = 1')}\n${nfd('é = 1')}\n`;
  t.match(edit(file, 'é = 1', 'x'), { ok: false, problem: /2|twice/ });
  t.match(edit(file, 'é = 1', 'x', true), { ok: false, problem: /must match exactly/ });
  const all = edit(file, nfd('é = 1'), 'x', true);
  t.equal(all.ok && all.text, 'x\nx\n', 'positive control: the exact text is replaced everywhere');
});

t.test('a letter without its mark is not the letter with it', async (t) => {
  t.match(edit(nfd('Größe'), 'Grö', 'Hö'), { ok: true });
  t.match(edit(nfd('né à'), 'ne a', 'x'), { ok: false });
});

t.test('an edit in any form of the characters changes its place only', async () => {
  const word = fc.array(fc.constantFrom('é', 'ö', 'ñ', 'Å', '각', 'a', ' ', 'x', '\n', 'e\u0301\u0323'), {
    maxLength: 8,
  });
  const texts = fc.tuple(word, word).map((parts) => parts.map((part) => part.join('')) as [string, string]);
  await fc.assert(
    fc.asyncProperty(
      texts,
      fc.constantFrom('NFC', 'NFD'),
      fc.constantFrom('NFC', 'NFD'),
      async ([before, after], form, asked) => {
        const file = `${before}|größe|${after}`.normalize(form);
        const result = edit(file, '|größe|'.normalize(asked), '|x|');
        return result.ok && result.text === `${before.normalize(form)}|x|${after.normalize(form)}`;
      },
    ),
    { ...seed, numRuns: 300 },
  );
});
