import fc from 'fast-check';
import t from 'tap';
import { type MarkdownOptions, MarkdownStream } from '../../src/cli/chat/markdown.ts';

const colors = {
  bold: (text: string) => `<b>${text}</b>`,
  cyan: (text: string) => `<c>${text}</c>`,
  dim: (text: string) => `<d>${text}</d>`,
} as unknown as MarkdownOptions['colors'];

/** Text shown for pieces that arrive one after the other. */
function shown(pieces: readonly string[], width = Number.POSITIVE_INFINITY): string {
  let text = '';
  const write = (piece: string) => {
    text += piece;
  };
  const stream = new MarkdownStream({ write, colors, width });
  for (const piece of pieces) stream.push(piece);
  stream.end();
  return text;
}

t.test('headings, lists, quotes, code and bold text are styled, and their marks are gone', async (t) => {
  t.equal(shown(['## Title\ntext']), '<b>Title</b>\ntext');
  t.equal(shown(['- one\n  * two\n1. three']), '• one\n  • two\n1. three');
  t.equal(shown(['> said']), '<d>│ </d><d>said</d>');
  t.equal(shown(['a **b** `c` d']), 'a <b>b</b> <c>c</c> d');
  t.equal(shown(['```ts\nlet a = **1**;\n# no heading\n```\nend']), '<c>let a = **1**;</c>\n<c># no heading</c>\nend');
});

t.test('text that is not Markdown stays unchanged', async (t) => {
  for (const text of ['2 * 3 * 4', 'a*b', '#tag', '-5 degrees', 'x ** y', '*', '#', '`'.repeat(2), '1.5 s'])
    t.equal(shown([text]).replace(/<\/?[bcd]>|\*\*|`/g, ''), text.replace(/\*\*|`/g, ''));
});

const unstyled = (text: string) => text.replace(/<\/?[bcd]>/g, '');

t.test('regression: lines are broken between words, below the text of their list item or quote', async (t) => {
  t.equal(
    unstyled(shown(['The answer is **forty two**, says the guide.'], 16)),
    'The answer is\nforty two, says\nthe guide.',
  );
  t.equal(
    unstyled(shown(['- one two three\n12. four five six'], 10)),
    '• one two\n  three\n12. four\n    five\n    six',
  );
  t.equal(unstyled(shown(['> one two three'], 10)), '│ one two\n│ three');
  t.equal(unstyled(shown(['漢字 漢字 漢字'], 10)), '漢字 漢字\n漢字');
  t.equal(unstyled(shown(['an unbreakable/path/of/a/file here'], 12)), 'an\nunbreakable/path/of/a/file\nhere');
  t.equal(unstyled(shown(['```\na line of code that is long\n```'], 10)), 'a line of code that is long\n');
});

t.test('regression: a table is set in columns, or as a list where it does not fit', async (t) => {
  const table = '| Name | Does |\n|---|:--|\n| **a** | reads `x` \\| y |\n| longer | writes |\n';
  t.equal(unstyled(shown([`${table}end`])), 'Name    Does\na       reads x | y\nlonger  writes\nend');
  t.equal(unstyled(shown([table], 16)), '• Name: a\n  Does: reads x\n    | y\n• Name: longer\n  Does: writes\n');
  t.equal(shown(['| no table\n| at all']), '| no table\n| at all\n');
});

t.test('regression: a step of the agent begins a line, and one empty line follows it', async (t) => {
  let text = '';
  const write = (piece: string) => {
    text += piece;
  };
  const stream = new MarkdownStream({ write, colors, width: 80 });
  stream.push('I read the function first.');
  stream.interrupt();
  write('▸ ReadFile\n');
  stream.push('\n\nIt is fine.');
  stream.end();
  t.equal(text, 'I read the function first.\n▸ ReadFile\n\nIt is fine.');
});

t.test('property: pieces of any size show the same as the whole, and no word is lost', async () => {
  const part = fc.constantFrom(
    '#',
    ' ',
    '*',
    '**',
    '`',
    '```',
    '\n',
    '- ',
    '> ',
    'word',
    '1. ',
    '\\',
    '_',
    '|',
    '|-|\n',
  );
  fc.assert(
    fc.property(fc.array(part, { maxLength: 40 }), fc.integer({ min: 1, max: 30 }), (parts, width) => {
      const whole = parts.join('');
      const [once, piecewise, single] = [shown([whole], width), shown(parts, width), shown([...whole], width)].map(
        unstyled,
      );
      const words = whole.split('word').length;
      return once === piecewise && once === single && once?.split('word').length === words;
    }),
    { seed: 4 },
  );
});
