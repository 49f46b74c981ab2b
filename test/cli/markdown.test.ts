import fc from 'fast-check';
import t from 'tap';
import { MarkdownStream } from '../../src/cli/chat/markdown.ts';

const colors = {
  bold: (text: string) => `<b>${text}</b>`,
  cyan: (text: string) => `<c>${text}</c>`,
  dim: (text: string) => `<d>${text}</d>`,
} as unknown as ConstructorParameters<typeof MarkdownStream>[1];

/** Text shown for pieces that arrive one after the other. */
function shown(pieces: readonly string[]): string {
  let text = '';
  const stream = new MarkdownStream((piece) => {
    text += piece;
  }, colors);
  for (const piece of pieces) stream.push(piece);
  stream.end();
  return text;
}

t.test('headings, lists, quotes, code and bold text are styled, and their marks are gone', async (t) => {
  t.equal(shown(['## Title\ntext']), '<b>Title</b>\ntext');
  t.equal(shown(['- one\n  * two\n1. three']), '• one\n  • two\n1. three');
  t.equal(shown(['> said']), '<d>│ </d><d>said</d>');
  t.equal(shown(['a **b** `c` d']), 'a <b>b</b> <c>c</c> d');
  t.equal(
    shown(['```ts\nlet a = **1**;\n# no heading\n```\nend']),
    '<d>```ts</d>\n<c>let a = **1**;</c>\n<c># no heading</c>\n<d>```</d>\nend',
  );
});

t.test('text that is not Markdown stays unchanged', async (t) => {
  for (const text of ['2 * 3 * 4', 'a*b', '#tag', '-5 degrees', 'x ** y', '*', '#', '`'.repeat(2), '1.5 s'])
    t.equal(shown([text]).replace(/<\/?[bcd]>|\*\*|`/g, ''), text.replace(/\*\*|`/g, ''));
});

t.test('property: pieces of any size show the same as the whole, and no word is lost', async () => {
  const part = fc.constantFrom('#', ' ', '*', '**', '`', '```', '\n', '- ', '> ', 'word', '1. ', '\\', '_');
  fc.assert(
    fc.property(fc.array(part, { maxLength: 40 }), (parts) => {
      const whole = parts.join('');
      const plain = (text: string) => text.replace(/<\/?[bcd]>/g, '');
      const [once, piecewise, single] = [shown([whole]), shown(parts), shown([...whole])].map(plain);
      const words = whole.split('word').length;
      return once === piecewise && once === single && once?.split('word').length === words;
    }),
    { seed: 4 },
  );
});
