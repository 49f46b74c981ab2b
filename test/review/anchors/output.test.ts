import fc from 'fast-check';
import t from 'tap';
import { markers, scanCode, scanOutput } from '../../../src/review/anchors/index.ts';

const out = (text: string) => scanOutput(text).text;
/** Zero-width joiner, which makes mentions, references and commands outside of code inactive. */
const joiner = '\u200d';

t.test('no user is mentioned', async (t) => {
  for (const text of [
    '@octocat',
    'cc @org/team',
    '(@a)',
    '**@a**',
    '/@a',
    'é@a',
    '"@a',
    'unpaired ` @a',
    '\\`@a`',
    '&#64;a',
    '&commat;a',
    '@&#97;',
    '@\u200bteam',
    '> @a',
    '- @a',
    '| @a |',
    '`a` @b',
    '[@a](https://x)',
  ]) {
    t.notMatch(out(text), /(^|[^A-Za-z0-9_])@[A-Za-z0-9&]|&#|&commat/, text);
  }
  t.equal(out('@octocat'), `@${joiner}octocat`, 'and it reads the same');
  t.equal(out('someone@example.com'), 'someone@example.com', 'an address is no mention');
});

t.test('code keeps its characters', async (t) => {
  for (const text of [
    '`@Component`',
    'Use `a < b` and ``x ` @y``.',
    '```ts\n@Injectable()\nconst a: Array<string> = b; // ![x](y)\n```',
    '~~~\n<img src="x">\n```\n@a\n~~~',
    '1. Do:\n   ```ts\n   @A() b: C<D>;\n   ```\n2. Then\n\n   ```\n   <x> @y\n   ```',
    '- a\n  - b\n\n    ```\n    @x <y>\n    ```',
    '`a || b<c>`',
  ]) {
    t.strictSame(scanOutput(text), { text, blockedBy: null, changes: [] }, text);
  }
});

t.test('text that only resembles code is prose', async (t) => {
  for (const text of [
    '```a`b\n@x\n```',
    '`````\na\n```\nb\n`````\n@x',
    '```\na\n```~~\nb\n```\n@x',
    '- a\n  ```\n  b\n@x\n```',
    '   ```\ncode\n```\n@x',
    'text\n2. a\n   ```\ncode\n   ```\n   @x',
    '- a\n  -\n    ```\n    b\n  @x',
    '> ```\n> a\n@x',
    '| a | b |\n|---|---|\n| ` | @x ` |',
    'foo `bar\nb` ` @x ` `',
    'https://x/` @x `',
    '- a\nlazy\n\n  ```\n  b\n@x',
    '```\na\n\u00a0```\n```\n@x',
    '```\na\n\t```\n```\n@x',
  ]) {
    t.match(out(text), `@${joiner}x`, JSON.stringify(text));
  }
});

t.test('a browser fetches nothing', async (t) => {
  for (const text of [
    '![a](https://evil.example/x.png)',
    '![a[b]](https://evil.example/x.png "t")',
    '!!![a](https://evil.example/x.png)',
    '![a][ref]\n\n[ref]: https://evil.example/x.png',
    '![ref]\n\n[ref]: https://evil.example/x.png',
    '!\u200b[a](https://evil.example/x.png)',
    '<img src="https://evil.example/x.png">',
    '<IMG\nsrc=https://evil.example/x.png\n>',
    '<picture><source srcset="https://evil.example/x.png"></picture>',
    '<video src=//evil.example/x>',
    '<svg onload=x>',
    '<img src="a`b`">',
    '&lt;img&gt; &#60;img src=x&#62;',
    '- ![a](https://evil.example/x.png)',
  ]) {
    t.notMatch(out(text), /!\[|<[a-z/!?]|&#/i, text);
  }
  t.equal(out('Oh![a](https://x.example/y)'), 'Oh[a](https://x.example/y)', 'the link is left');
});

t.test('links go where they seem to, and carry nothing away', async (t) => {
  t.notMatch(out('[a](javascript:alert(1)) [b](data:text/html,x) [c]: data:x'), /\]\((javascript|data):|\]: data:/);
  const long = `https://x.example/p?d=${'a'.repeat(80)}`;
  t.equal(out(`see ${long} or [here](${long})`), 'see https://x.example/p or [here](https://x.example/p)');
  t.equal(out('https://github.com@evil.example/'), 'https://evil.example/');
  t.equal(out('<https://developer.mozilla.org/a?b=c#d>'), 'https://developer.mozilla.org/a?b=c#d');
});

t.test('nothing is hidden', async (t) => {
  t.equal(out('a<!-- x -->b<!--\n`y`\n-->c').includes('<!--'), false);
  t.equal(out('a\u202eb\u2066c\u2069\u200bd\u{e0041}e\ufefff\u00adg\u2028h\u3164i\u0007j\u001b[31m'), 'abcdefghij[31m');
  t.equal(out('👩‍💻 ❤️ नमस्ते क्‍ष'), '👩‍💻 ❤️ नमस्ते क्‍ष', 'emoji and joiners of scripts stay');
  t.equal(scanCode('let a = "\u202e";').text, 'let a = "";');
  t.strictSame(scanOutput('a\u202eb').changes, ['invisible characters']);
});

t.test('no marker of ours can be forged, not even in code', async (t) => {
  for (const marker of [markers.review('r'), markers.finding('f'), markers.summary('i'), markers.reply(1)]) {
    for (const text of [
      marker,
      `\`${marker}\``,
      `\`\`\`\n${marker}\n\`\`\``,
      marker.replace('oratorio', 'Oratorio\u200b'),
      marker.replace('<', '&lt;'),
    ]) {
      t.notOk(out(text).toLowerCase().includes(marker.slice(0, 13)), text);
      t.notOk(scanCode(text).text.toLowerCase().includes(marker.slice(0, 13)), text);
    }
  }
});

t.test('a fence does not stay open, and makes nothing that can be applied', async (t) => {
  t.equal(out('a\n```ts\nb'), 'a\n```ts\nb\n```');
  t.equal(out('a\n~~~~\nb\n~~~'), 'a\n~~~~\nb\n~~~\n~~~~');
  t.equal(out('- a\n  ```\n  b'), '- a\n  ```\n  b\n  ```');
  t.equal(out('```suggestion\nevil()\n```'), '```text\nevil()\n```');
  t.equal(out('```mermaid\ngraph\n```'), '```text\ngraph\n```');
});

t.test('commands for bots and words that close issues are made ineffective', async (t) => {
  t.equal(out('/merge\n/approve now'), `${joiner}/merge\n${joiner}/approve now`);
  t.equal(out('/etc/passwd is read'), '/etc/passwd is read');
  t.equal(out('Fixes #12, see o/r#3 and #4'), `Fixes #${joiner}12, see o/r#${joiner}3 and #4`);
});

const piece = fc.constantFrom(
  '`',
  '``',
  '```',
  '~~~',
  '\n',
  '\n\n',
  ' ',
  '  ',
  '    ',
  '\t',
  '- ',
  '1. ',
  '2. ',
  '> ',
  '@x',
  '![',
  '](u)',
  '<img src=x>',
  '<!--',
  '-->',
  '\\',
  '|',
  '|-|\n',
  'a',
  '&#64;',
  '\u200b',
  'https://',
  'ts',
);
t.test('a URL that only becomes one with a back-tick hides no image behind it', (t) => {
  const image = '` ![x](https://evil.example/x.png) `';
  for (const before of [
    'https://a.example<!--',
    'https://a.example<b>',
    'https://a.example<!-- x -->',
    'https://a.example<!--\nx -->',
  ]) {
    t.notMatch(scanOutput(before + image).text, '![', before);
  }
  t.match(scanOutput(`--> ${image.slice(0, -1).trimEnd()}\``).text, '![', 'code elsewhere stays code');
  t.end();
});

t.test('a second scan changes no mention, image, HTML or marker (property)', async () => {
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 30 }), (pieces) => {
      const once = scanOutput(pieces.join(''));
      const twice = scanOutput(once.text);
      return !twice.changes.some((change) =>
        ['mentions', 'images', 'HTML', 'HTML comments', 'forged markers'].includes(change),
      );
    }),
    { numRuns: 3_000 },
  );
});
