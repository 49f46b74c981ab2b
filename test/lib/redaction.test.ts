import fc from 'fast-check';
import t from 'tap';
import {
  redact,
  redacted,
  StreamRedactor,
  shortestSecret,
  spellingsOf,
  TextStreamRedactor,
} from '../../src/lib/index.ts';
import { anyCharacter } from '../any-character.ts';

/** Feeds `bytes` in pieces of these sizes, repeated. */
function stream(bytes: Buffer, sizes: readonly number[], secrets: readonly string[]): Buffer {
  const redactor = new StreamRedactor(secrets);
  const out: Buffer[] = [];
  for (let at = 0, piece = 0; at < bytes.length; piece++) {
    const size = sizes[piece % sizes.length] ?? 1;
    out.push(redactor.write(bytes.subarray(at, at + size)));
    at += size;
  }
  return Buffer.concat([...out, redactor.end()]);
}

const sizes = fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1, maxLength: 5 });
const secret = fc
  .string({ minLength: 8, maxLength: 20, unit: fc.constantFrom('a', 'b', '-', ' ', '"', 'ü', '\n') })
  .filter((text) => text.trim().length >= shortestSecret);

t.test('regression: edge 22 a secret split over chunks is replaced, and every other byte passes', async (t) => {
  fc.assert(
    fc.property(secret, fc.array(fc.string({ unit: anyCharacter }), { maxLength: 6 }), sizes, (key, parts, pieces) => {
      const innocent = parts.filter((part) => !part.includes(key.slice(0, 1)));
      const text = innocent.join(key);
      const out = stream(Buffer.from(text), pieces, [key]).toString();
      return out === innocent.join(redacted) || text === '';
    }),
    { numRuns: 2_000 },
  );
  t.pass();
});

t.test('regression: edge 22 every spelling of a secret is replaced in any context', async (t) => {
  fc.assert(
    fc.property(secret, fc.string(), fc.string(), sizes, (key, before, after, pieces) => {
      const spellings = [key, encodeURIComponent(key), JSON.stringify(key).slice(1, -1)];
      const text = spellings.map((spelling) => `${before}${spelling}${after}`).join('\n');
      const out = stream(Buffer.from(text), pieces, [key]).toString();
      return !spellings.some((spelling) => out.includes(spelling));
    }),
    { numRuns: 2_000 },
  );
  t.pass();
});

t.test('a stream passes text that cannot be a secret, and invalid bytes, at once', async (t) => {
  const redactor = new StreamRedactor(['sk-secret']);
  t.equal(redactor.write(Buffer.from('ready\n')).toString(), 'ready\n');
  t.equal(redactor.write(Buffer.from('key sk-sec')).toString(), 'key ', 'a beginning waits');
  t.equal(redactor.write(Buffer.from('ond\n')).toString(), 'sk-second\n', 'until it is known to be none');
  const bytes = Buffer.from([0xff, 0x00, 0x80, 0xc3]);
  t.same(redactor.write(bytes), bytes);
  redactor.write(Buffer.from('sk-secre'));
  t.equal(redactor.end().toString(), redacted, 'most of a secret is not written at the end either');
  redactor.write(Buffer.from('sk'));
  t.equal(redactor.end().toString(), 'sk');
  t.same(new StreamRedactor([]).write(bytes), bytes);
});

t.test('of two secrets with a common beginning the longer one leaves no remainder', async (t) => {
  const keys = ['token', 'token-and-more'];
  for (let size = 1; size < 15; size++)
    t.equal(stream(Buffer.from('x token-and-more token y'), [size], keys).toString(), `x ${redacted} ${redacted} y`);
  t.equal(redact('x token-and-more y', keys), `x ${redacted} y`);
});

t.test('a text shorter than the shortest secret is not replaced', async (t) => {
  t.equal(redact('on port 80, abc, abcd', ['', 'on', '80', 'abc', ' abc ']), 'on port 80, abc, abcd');
  t.equal(redact('on port 80, abc, abcd', ['abcd']), `on port 80, abc, ${redacted}`);
});

t.test('each spelling of a secret is replaced as a whole, in a text and in a stream', async (t) => {
  fc.assert(
    fc.property(fc.string({ minLength: shortestSecret, unit: anyCharacter }), sizes, (key, pieces) =>
      spellingsOf([key]).every((spelling) => {
        const text = `<${spelling}>`;
        return (
          redact(text, [key]) === `<${redacted}>` &&
          stream(Buffer.from(text), pieces, [key]).toString() === redact(text, [key])
        );
      }),
    ),
  );
  t.pass();
});

t.test('a secret within a base64 text is replaced at each offset', async (t) => {
  const key = 'sk-0123456789abcdef';
  for (const before of ['', 'a', 'ab', 'abc'])
    for (const encoding of ['base64', 'base64url'] as const)
      t.match(redact(Buffer.from(`${before}${key}`).toString(encoding), [key]), redacted);
});

t.test('a stream of text is masked like its bytes', async (t) => {
  const part = fc.oneof(
    fc.constantFrom('sk-ünd-😀', 'sk-ün', 'd-😀', '\ufffd', '\n'),
    fc.string({ unit: anyCharacter }),
  );
  fc.assert(
    fc.property(fc.array(part, { maxLength: 8 }), (pieces) => {
      const secrets = ['sk-ünd-😀', 'another-😀-secret'];
      const [text, bytes] = [new TextStreamRedactor(secrets), new StreamRedactor(secrets)];
      const shown = pieces.map((piece) => text.push(piece)).join('') + text.end();
      const written = pieces.map((piece) => bytes.write(Buffer.from(piece)));
      return shown === Buffer.concat([...written, bytes.end()]).toString();
    }),
  );
  t.pass();
});
