/** Secrets of an odd `.env`: no reading of a line, and no message of a composition tool, shows one. */
import fc from 'fast-check';
import t from 'tap';
import { withoutEnvQuotes } from '../../../src/deploy/engine/env-quotes.ts';
import { outputRedactorFor } from '../../../src/deploy/engine/redactor.ts';
import { changeEnv, parseEnv, secretsInEnv } from '../../../src/deploy/files/index.ts';

const seed = process.env['ORATORIO_TEST_SEED'] === 'random' ? {} : { seed: 20_261_128 };

const secrets = {
  ORATORIO_MODEL_API_KEY: 'sk-x7Kq2vN9pLw4Zt8RmB3c',
  ORATORIO_AGENT_TOKEN: 'q4uX-0yTnE_7hVbZkD2sWf9',
  ORATORIO_SERVICE_TOKEN: 'Hj3$pQ8#mZ1rVt6yLc0dXe5',
  FOREIGN_PASSWORD: 'Yb6nG1zR9eKu4wMx7Qa2TiP',
} as const;
const names = Object.keys(secrets);
const valid = changeEnv('', { COMPOSE_PROJECT_NAME: 'review', ORATORIO_IMAGE: 'oratorio:1', ...secrets });

/** One odd edit of a line, as people make it. */
const edits: Readonly<Record<string, (line: string) => string>> = {
  closingQuoteDropped: (line) => line.replace(/'$/, ''),
  openingQuoteDropped: (line) => line.replace("'", ''),
  doubleQuoteOpened: (line) => line.replace("='", '="').replace(/'$/, ''),
  doubleQuoted: (line) => line.replaceAll("'", '"'),
  bare: (line) => line.replaceAll("'", ''),
  commentedOut: (line) => `# ${line}`,
  commentedOutTight: (line) => `#${line}`,
  exported: (line) => `  export ${line}`,
  spaced: (line) => line.replace('=', ' = '),
  colon: (line) => line.replace('=', ': '),
  commented: (line) => `${line} # of production`,
  brokenInTwo: (line) => line.replace("='", "=\n'"),
  withoutName: (line) => line.slice(line.indexOf('=') + 1),
  twice: (line) => `${line}\n${line.replace("'", '')}`,
  escaped: (line) => line.replace(/'(.*)'$/, '"\\$1\\"'),
  asItIs: (line) => line,
};
const oddEnv = fc
  .record({
    edits: fc.array(fc.tuple(fc.nat(names.length + 1), fc.constantFrom(...Object.keys(edits))), { maxLength: 4 }),
    isCrlf: fc.boolean(),
    joinedAt: fc.option(fc.nat(names.length)),
    hasMark: fc.boolean(),
  })
  .map(({ edits: chosen, isCrlf, joinedAt, hasMark }) => {
    const lines = valid.trimEnd().split('\n');
    for (const [at, name] of chosen) lines[at] = edits[name]?.(lines[at] ?? '') ?? '';
    if (joinedAt !== null) lines.splice(joinedAt, 2, lines.slice(joinedAt, joinedAt + 2).join(' '));
    const text = `${hasMark ? '\ufeff' : ''}${lines.join('\n')}\n`;
    return isCrlf ? text.replaceAll('\n', '\r\n') : text;
  });

/** Longest part of a secret in a text. */
const shown = (text: string): string | undefined =>
  Object.values(secrets)
    .flatMap((secret) => Array.from({ length: secret.length - 9 }, (_, at) => secret.slice(at, at + 10)))
    .find((part) => text.includes(part));

t.test('regression: H44 no line of an odd .env keeps a secret after redaction', async (t) => {
  t.equal(shown(valid) !== undefined, true, 'the search finds a secret');
  fc.assert(
    fc.property(oddEnv, (text) => {
      const redact = outputRedactorFor(secretsInEnv(text));
      for (const secret of Object.values(secrets)) {
        if (!text.includes(secret)) continue;
        if (shown(redact(`token ${secret} is refused`)) !== undefined)
          throw new Error(`${JSON.stringify(text)} hides ${secret}`);
      }
    }),
    { ...seed, numRuns: 300 },
  );
});

t.test('a message that quotes any part of .env is replaced by line and variable', async (t) => {
  fc.assert(
    fc.property(oddEnv, fc.nat(), fc.integer({ min: 10, max: 60 }), fc.boolean(), (text, from, length, isEscaped) => {
      const part = text.slice(from % text.length).slice(0, length);
      const quote = isEscaped ? JSON.stringify(part).slice(1, -1) : part;
      const stderr = `reading it failed near "${quote}"\nport is already allocated\n`;
      const said = withoutEnvQuotes({ exitCode: 1, stdout: '', stderr }, text).stderr;
      if (shown(said) !== undefined) throw new Error(`${JSON.stringify(text)} → ${said}`);
      if (!said.includes('port is already allocated')) throw new Error('words that quote nothing are missing');
    }),
    { ...seed, numRuns: 300 },
  );
  const open = valid.replace(`${secrets.ORATORIO_AGENT_TOKEN}'`, secrets.ORATORIO_AGENT_TOKEN);
  const stderr = `unterminated quoted value 'q4uX-0y`;
  t.match(
    withoutEnvQuotes({ exitCode: 1, stdout: '', stderr }, open).stderr,
    /^Line 4 of \.env \(ORATORIO_AGENT_TOKEN\) has a quote/,
  );
  t.equal(
    withoutEnvQuotes({ exitCode: 1, stdout: '', stderr: 'no such service\n' }, valid).stderr,
    'no such service\n',
  );
});

t.test('values that are not secret, and prose in comments, stay readable', async (t) => {
  const text = `${valid}# NOTE: see the manual for details\n# ORATORIO_IMAGE='other:2'\nORATORIO_MODEL='gpt-5'\n`;
  const redact = outputRedactorFor(secretsInEnv(text));
  const harmless = 'review oratorio:1 other:2 gpt-5 see the manual for details';
  t.equal(redact(harmless), harmless);
});

t.test('a variable of ours never takes over the lines after it', async (t) => {
  const text = 'ORATORIO_IMAGE="oratorio:1\nORATORIO_AGENT_TOKEN=abc\nX=1"\n';
  const { values, problems } = parseEnv(text);
  t.notOk(values.has('ORATORIO_IMAGE'));
  t.match(problems, [{ code: 'unterminated', line: 1, key: 'ORATORIO_IMAGE' }]);
});
