import fc from 'fast-check';
import t from 'tap';
import { PrintedLines, printable, Tail } from '../../../src/deploy/engine/lines.ts';
import { outputRedactorFor as redactorFor } from '../../../src/deploy/engine/redactor.ts';

const secret = 'p4ss"w/ord+with$sign ü';

t.test('a secret is replaced in every spelling', async (t) => {
  const clean = redactorFor([secret]);
  const spellings = [
    secret,
    encodeURIComponent(secret),
    JSON.stringify({ secret }),
    Buffer.from(secret).toString('base64'),
    Buffer.from(secret).toString('base64url'),
    `Basic ${Buffer.from(`oratorio:${secret}`).toString('base64')}`,
    Buffer.from(`xx${secret}yy`).toString('base64'),
    secret.replaceAll('$', '$$$$'),
    new URLSearchParams({ secret }).toString(),
  ];
  for (const text of spellings) {
    t.match(clean(`before ${text} after`), /redacted/, text);
    t.notMatch(clean(text), 'p4ss', text);
  }
  t.equal(clean('nothing of it'), 'nothing of it');
});

t.test('each line of a key is replaced, and of two secrets the longer one first', async (t) => {
  const key = '-----BEGIN RSA PRIVATE KEY-----\nMIIEowIBAAKCAQEA\nshort\n-----END RSA PRIVATE KEY-----\n';
  const clean = redactorFor([key, 'abcdef', 'abcdefgh']);
  t.equal(clean('> MIIEowIBAAKCAQEA'), '> [redacted]');
  t.equal(clean(JSON.stringify(key)), '"[redacted]"');
  t.equal(clean('abcdefgh abcdefg'), '[redacted] [redacted]g');
});

t.test('a secret with a dollar is replaced in the form that Compose gives it', async (t) => {
  const clean = redactorFor(['first-part$second-part']);
  t.equal(clean('KEY: first-part'), 'KEY: [redacted]');
});

t.test('a text that looks like a secret is replaced without being known', async (t) => {
  const clean = redactorFor([]);
  t.equal(clean('https://user:pass@github.com/o/n'), 'https://[redacted]@github.com/o/n');
  t.equal(clean('token ghs_0123456789abcdefABCDEF done'), 'token [redacted] done');
  t.equal(clean('Authorization: Bearer abc.def'), 'Authorization: Bearer [redacted]');
  t.equal(clean('MY_API_KEY=abc next'), 'MY_API_KEY=[redacted] next');
  t.equal(
    clean('git@github.com:owner/name.git and https://github.com/o/n'),
    'git@github.com:owner/name.git and https://github.com/o/n',
  );
});

t.test('values too short to be secrets are not replaced', async (t) => {
  t.equal(redactorFor(['', 'a', '80'])('a port 80'), 'a port 80');
});

t.test('the lines of a text do not depend on its chunks and contain no secret', async () => {
  const secrets = ['geheimnis-äöü-123', 'another/secret+value'];
  const line = fc
    .array(fc.oneof(fc.constantFrom(...secrets), fc.stringMatching(/^[ -~äß]{0,20}$/)))
    .map((parts) => parts.join(''));
  await fc.assert(
    fc.asyncProperty(fc.array(line, { maxLength: 6 }), fc.array(fc.nat(40), { minLength: 1 }), async (lines, cuts) => {
      const printed: string[] = [];
      const clean = redactorFor(secrets);
      const splitter = new PrintedLines({
        clean,
        secrets,
        onLine: (each) => printed.push(each),
      });
      const bytes = Buffer.from(lines.map((each) => `${each}\n`).join(''));
      for (let at = 0, turn = 0; at < bytes.length; turn++) {
        const size = (cuts[turn % cuts.length] ?? 0) + 1;
        splitter.add(bytes.subarray(at, at + size));
        at += size;
      }
      splitter.end();
      const expected = lines.map((each) => printable(clean(each)));
      return (
        JSON.stringify(printed) === JSON.stringify(expected) &&
        !secrets.some((each) => printed.join('\n').includes(each))
      );
    }),
    { numRuns: 200 },
  );
});

t.test('an endless line is passed on in pieces without parts of secrets', async (t) => {
  const printed: string[] = [];
  const secrets = ['half-a-secret-is-no-secret'];
  const lines = new PrintedLines({
    clean: redactorFor(secrets),
    secrets,
    onLine: (line) => printed.push(line),
  });
  for (let count = 0; count < 40; count++) lines.add(Buffer.from(`${'x'.repeat(4_087)}half-a-sec`));
  for (let count = 0; count < 40; count++) lines.add(Buffer.from(`${'y'.repeat(4_000)}half-a-secret-is-no-secret`));
  lines.end();
  t.ok(printed.length > 2);
  t.notMatch(printed.join(''), 'half-a-secret-is');
  t.equal(printed.join('').split('[redacted]').length - 1, 40);
});

t.test('line feeds, carriage returns and both together end a line', async (t) => {
  const printed: string[] = [];
  const lines = new PrintedLines({ clean: (text) => text, secrets: [], onLine: (line) => printed.push(line) });
  for (const chunk of ['one\r', '\ntwo\rthree\n\nfo', 'ur']) lines.add(Buffer.from(chunk));
  lines.end();
  t.strictSame(printed, ['one', 'two', 'three', '', 'four']);
});

t.test('control sequences are removed before a text reaches a terminal', async (t) => {
  t.equal(printable('\u001b[31mred\u001b[0m \u001b]0;title\u0007done\u0008\u202e!  '), 'red done??!');
  t.equal(printable('tab\tstays'), 'tab\tstays');
});

t.test('the kept end of an output begins with a whole line', async (t) => {
  const tail = new Tail(20);
  for (const word of ['first line\n', 'secret-cut-in-half\n', 'last line\n']) tail.add(Buffer.from(word));
  t.equal(tail.text(), 'last line\n');
  const long = new Tail(4);
  long.add(Buffer.from('a secret without end'));
  t.equal(long.text(), '');
});
