import { runInThisContext } from 'node:vm';
import fc from 'fast-check';
import t from 'tap';
import { asciiCode } from '../../scripts/ascii-code.ts';

const isAscii = (text: string): boolean => /^[\0-\x7f]*$/.test(text);

/** Value of an expression before and after. */
const both = (expression: string): readonly [unknown, unknown] => {
  const code = asciiCode(expression);
  if (!isAscii(code)) throw new Error(`not ASCII: ${code}`);
  return [runInThisContext(expression), runInThisContext(code)];
};

t.test('escaped code means the same in strings, templates, regular expressions and names', async (t) => {
  for (const expression of [
    `'…'`,
    String.raw`'\…'`,
    String.raw`'\\…'`,
    String.raw`'\\\…é'`,
    "`a${'é'}–😀`",
    `/[–😀]+/u.exec('a😀–b')[0]`,
    String.raw`/\–/.test('–')`,
    `(() => { const größe = 1; return größe; })()`,
    `/* … */ 'x' // …`,
  ]) {
    const [before, after] = both(expression);
    t.equal(after, before, expression);
  }
});

t.test('property: any text in a string or template comes out of its escaped code', async () => {
  fc.assert(
    fc.property(
      fc.string({ unit: fc.oneof(fc.constantFrom('\\', '\u2028', '…', '\ud83d', 'é'), fc.string()) }),
      (text) => {
        for (const code of [JSON.stringify(text), `\`${text.replaceAll(/[\\`$]/g, String.raw`\$&`)}\``]) {
          const [before, after] = both(code);
          if (before !== after) throw new Error(`${code}: ${String(after)}`);
        }
      },
    ),
    { seed: 11, numRuns: 300 },
  );
});

t.test('String.raw would see an escape: such code is refused, not changed', async (t) => {
  t.throws(() => asciiCode('String.raw`a…`'), { message: /String\.raw/ });
  t.equal(asciiCode("f(String.raw`a`, '…')"), "f(String.raw`a`, '\\u2026')");
});
