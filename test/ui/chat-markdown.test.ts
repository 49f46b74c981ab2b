/** Markdown of a model: the result is the same for any division into pieces, and nothing of it leads elsewhere. */
import fc from 'fast-check';
import type { Token } from 'marked';
import t from 'tap';
import { blocksOf, GrowingMarkdown } from '../../src/ui/views/chat/markdown/blocks.ts';
import { decodeEntities } from '../../src/ui/views/chat/markdown/entities.ts';
import { safeHref } from '../../src/ui/views/chat/markdown/links.ts';

const seed = process.env['ORATORIO_TEST_SEED'] === 'random' ? {} : { seed: 20_261_125 };

/** Pieces of Markdown that have a meaning of their own, and those that change the meaning of the text before. */
const piece = fc.oneof(
  { weight: 3, arbitrary: fc.constantFrom('\n', '\n\n', ' ', '  ', '    ', '\t', '\r\n', '\r') },
  {
    weight: 3,
    arbitrary: fc.constantFrom(
      '- ',
      '* ',
      '1. ',
      '2) ',
      '> ',
      '# ',
      '```',
      '```js\n',
      '~~~',
      '---',
      '===',
      '***',
      '| a | b |',
      '|--|--|',
      '[ ] ',
      '<div>',
      '</div>',
      '<!--',
      '-->',
      '<script>',
      '**',
      '_',
      '`',
      '~~',
      '[x](http://a.b)',
      '![p](http://a.b/c.png)',
      '[r]: http://a.b',
      '[r]',
      'https://a.b/c',
      '&copy;',
      '&#65;',
      '\\',
      '=',
      '-',
      '+',
      '\u202e',
      '\u001b[31m',
    ),
  },
  { weight: 2, arbitrary: fc.constantFrom('a', 'word', 'two words', 'Ä', '1') },
  { weight: 1, arbitrary: fc.string({ maxLength: 6 }) },
);
const document = fc.array(piece, { maxLength: 40 }).map((pieces) => pieces.join(''));

const plain = (blocks: readonly Token[]) => JSON.stringify(blocks.filter(({ type }) => type !== 'space'));

t.test('any text, split in any way and parsed after each piece, gives the blocks of the whole', (t) => {
  fc.assert(
    fc.property(document, fc.array(fc.nat(12), { minLength: 1, maxLength: 12 }), (text, sizes) => {
      const growing = new GrowingMarkdown();
      let at = 0;
      for (let turn = 0; at < text.length; turn += 1) {
        const size = (sizes[turn % sizes.length] ?? 0) + 1;
        growing.append(text.slice(at, at + size));
        growing.blocks();
        at += size;
      }
      return plain(growing.blocks()) === plain(blocksOf(text));
    }),
    { ...seed, numRuns: 1_500 },
  );
  t.end();
});

t.test('a settled block stays the same object, so that it is drawn once', async (t) => {
  const growing = new GrowingMarkdown();
  growing.append('One.\n\nTwo.\n\nThree.\n\nFour.\n\n');
  const [first] = growing.blocks();
  growing.append('Five, which **grows');
  growing.append('**.');
  t.equal(growing.blocks()[0], first);
});

t.test('quotes and lists nested without an end are text, in pieces of any size', async (t) => {
  for (const mark of ['> ', '- ', '1. ', '> - ', '   > 1) ']) {
    const text = mark.repeat(4_000);
    const whole = blocksOf(text);
    t.ok(whole.length > 0 && whole.every(({ type }) => type === 'html'), mark);
    t.equal(whole.map(({ raw }) => raw).join(''), text, mark);
    const growing = new GrowingMarkdown();
    for (let at = 0; at < text.length; at += 1_000) {
      growing.append(text.slice(at, at + 1_000));
      growing.blocks();
    }
    t.equal(
      growing
        .blocks()
        .map(({ raw }) => raw)
        .join(''),
      text,
      mark,
    );
  }
  t.equal(blocksOf('> > > - 1. a')[0]?.type, 'blockquote', 'what a person writes is read');
  t.equal(blocksOf(`Title\n${'-'.repeat(80)}\ntext`)[0]?.type, 'heading');
});

t.test('an emphasis ends within reach, so that marks without an end cost no more than their number', async (t) => {
  const [near] = blocksOf(`**${'a'.repeat(900)}** and *b*`);
  t.match(near, { tokens: [{ type: 'strong' }, { type: 'text' }, { type: 'em' }] });
  const [far] = blocksOf(`**${'a'.repeat(1_100)}** and *b*`);
  t.match(far, { tokens: [{ type: 'text' }, { type: 'em' }] });
});

t.test('a long text is read in slices, and every slice adds to the blocks', async (t) => {
  const text = Array.from({ length: 2_000 }, (_, index) => `Paragraph ${index}.`).join('\n\n');
  const growing = new GrowingMarkdown();
  growing.append(text);
  const first = growing.read();
  t.ok(first.length > 0 && !growing.isRead, 'a part is read');
  t.equal(growing.read()[0], first[0], 'and stays');
  t.equal(plain(growing.blocks()), plain(blocksOf(text)));
  t.ok(growing.isRead);
});

t.test('only web addresses and mail become links', async (t) => {
  for (const href of ['http://a.b/', 'https://a.b/c?d#e', 'mailto:a@b.c', 'HTTPS://A.B/']) t.ok(safeHref(href), href);
  const refused = [
    'javascript:alert(1)',
    'JaVaScRiPt:alert(1)',
    ' javascript:alert(1)',
    'java\nscript:alert(1)',
    'data:text/html,x',
    'vbscript:x',
    'file:///etc/passwd',
    'blob:http://a.b/c',
    'ftp://a.b',
    'ws://a.b',
    '//a.b/c',
    '/dashboard/api',
    '#/settings',
    'x',
    '',
    'http://',
    `https://a.b/${'x'.repeat(5_000)}`,
  ];
  for (const href of refused) t.equal(safeHref(href), null, href.slice(0, 40));
  fc.assert(
    fc.property(fc.string(), (href) => /^(?:https?|mailto):/.test(safeHref(href) ?? 'http:')),
    { ...seed, numRuns: 500 },
  );
});

t.test('entities are decoded from a table, and unknown ones stay', async (t) => {
  t.equal(
    decodeEntities('&copy; &amp;lt; &#65;&#x42; &unknown; &constructor; &'),
    '© &lt; AB &unknown; &constructor; &',
  );
  t.equal(decodeEntities('&#0;&#xD800;&#1114112;'), '\ufffd\ufffd\ufffd');
});
