import fc from 'fast-check';
import t from 'tap';
import {
  changeEnv,
  checkSecretText,
  newSecret,
  parseEnv,
  type SecretRefusal,
  secretOf,
  secretRefusals,
} from '../../../src/deploy/files/index.ts';
import { anyCharacter } from '../../any-character.ts';

t.test('a new secret is 32 random bytes in base64url, and passes the check itself', (t) => {
  const made = new Set(Array.from({ length: 100 }, newSecret));
  t.equal(made.size, 100);
  for (const secret of made) {
    t.match(secret, /^[A-Za-z0-9_-]{43}$/);
    t.strictSame(checkSecretText(secret), { secret });
  }
  t.end();
});

t.test('takes one line of 16 to 256 plain characters; line breaks at its end do not count', (t) => {
  const good = 'abcdefgh01234567';
  for (const end of ['', '\n', '\r\n', '\n\n']) t.strictSame(checkSecretText(good + end), { secret: good });
  t.strictSame(checkSecretText('x'.repeat(256)), { secret: 'x'.repeat(256) });
  t.strictSame(checkSecretText(`${good}!#%&()*+,-./:;<=>?@[]^_{|}~`), { secret: `${good}!#%&()*+,-./:;<=>?@[]^_{|}~` });
  t.end();
});

t.test('a refusal names the reason, and never the text', (t) => {
  const good = 'abcdefgh01234567';
  const cases: readonly (readonly [text: string, reason: SecretRefusal])[] = [
    ['', 'empty'],
    ['\n', 'empty'],
    ['abcdefgh0123456', 'tooShort'],
    ['x'.repeat(257), 'tooLong'],
    [`${good}\n${good}\n`, 'severalLines'],
    [`\n${good}`, 'severalLines'],
    [`${good}\r${good}`, 'severalLines'],
    [`${good} `, 'whitespace'],
    [` ${good}`, 'whitespace'],
    [`${good}\t`, 'whitespace'],
    [`\ufeff${good}`, 'whitespace'],
    [`${good}\0`, 'notPrintable'],
    [`${good}é`, 'notPrintable'],
    [`${good}\u2019`, 'notPrintable'],
    [`${good}"`, 'quote'],
    [`${good}'`, 'quote'],
    [`${good}\``, 'quote'],
    [`${good}\\`, 'backslash'],
  ];
  for (const [text, refused] of cases) {
    t.strictSame(checkSecretText(text), { refused }, JSON.stringify(text));
    t.throws(() => secretOf(text, 'The secret in hook.secret'), {
      code: 'secretRefused',
      message: `The secret in hook.secret ${secretRefusals[refused]}.`,
    });
  }
  t.equal(secretOf(`${good}\n`, 'x'), good);
  t.end();
});

t.test('a secret that passes is read back unchanged from .env', (t) => {
  const text = fc.string({ unit: anyCharacter, minLength: 16, maxLength: 60 });
  const plain = fc.stringMatching(/^[\x21-\x7e]{16,60}$/);
  fc.assert(
    fc.property(fc.oneof(text, plain), (given) => {
      const checked = checkSecretText(given);
      if ('refused' in checked) return true;
      const env = changeEnv('', { ORATORIO_AGENT_TOKEN: checked.secret });
      return parseEnv(env).values.get('ORATORIO_AGENT_TOKEN') === given.replace(/[\r\n]+$/, '');
    }),
    { numRuns: 500 },
  );
  t.end();
});
