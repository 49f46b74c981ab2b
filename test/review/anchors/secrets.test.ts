import { generateKeyPairSync } from 'node:crypto';
import fc from 'fast-check';
import t from 'tap';
import { scanCode, scanOutput } from '../../../src/review/anchors/index.ts';

/** Put together here, so that no file holds the shape of a credential. */
const letters = 'q7Zk2Vw9Xb4Nt6Lp8Rm3Hs5Jd1Gf0Cy';
const random = (length: number) => letters.repeat(Math.ceil(length / letters.length)).slice(0, length);
const hex = (length: number) => '9f8a7b6c5d4e3f2a1b0c'.repeat(9).slice(0, length);
const jwt = ['eyJhbGciOiJIUzI1NiJ9', `eyJzdWIiOiI${random(12)}`, random(32)].join('.');
const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
const pem = (type: 'pkcs1' | 'pkcs8') => privateKey.export({ type, format: 'pem' }).toString();

const credentials: Readonly<Record<string, string>> = {
  'GitHub, personal': `ghp_${random(36)}`,
  'GitHub, installation of the old form': `ghs_${random(36)}`,
  'GitHub, installation with a web token': `ghs_12345_${jwt}`,
  'GitHub, short': `gho_${random(18)}`,
  'GitHub, very long': `ghu_${random(400)}`,
  'GitHub, refresh': `ghr_${random(76)}`,
  'GitHub, fine-grained': `github_pat_${random(22)}_${random(59)}`,
  'AWS access key': `AKIA${'Q7ZK2VW9XB4NT6LP'}`,
  'AWS temporary key': `ASIA${'Q7ZK2VW9XB4NT6LP'}`,
  'AWS secret key': `aws_secret_access_key = ${random(40)}`,
  'Google API key': `AIza${random(35)}`,
  'Google OAuth': `ya29.${random(60)}`,
  'Google service account': `{"private_key": ${JSON.stringify(pem('pkcs8'))}}`,
  'Slack bot': `xoxb-123456789012-${random(24)}`,
  'Slack app': `xapp-1-${random(30)}`,
  'Slack webhook': `https://hooks.slack.com/services/T0ABCDEF1/B0ABCDEF1/${random(24)}`,
  'Stripe live': `sk_live_${random(24)}`,
  'Stripe restricted': `rk_live_${random(24)}`,
  'Stripe webhook': `whsec_${random(32)}`,
  npm: `npm_${random(36)}`,
  PyPI: `pypi-AgEIcHlwaS5vcmc${random(40)}`,
  GitLab: `glpat-${random(20)}`,
  SendGrid: `SG.${random(22)}.${random(43)}`,
  OpenAI: `sk-proj-${random(48)}`,
  Anthropic: `sk-ant-${random(48)}`,
  'Hugging Face': `hf_${random(34)}`,
  Telegram: `123456789:AA${random(33)}`,
  Azure: `AccountKey=${random(86)}==`,
  Vault: `hvs.${random(30)}`,
  'RSA key': pem('pkcs1'),
  'PKCS#8 key': pem('pkcs8'),
  'key on one line': pem('pkcs8').replaceAll('\n', '\\n'),
  'JSON Web Token': jwt,
  'bearer header': `Authorization: Bearer ${random(40)}`,
  'connection string': 'postgres://app:s3cr3t-Pa55@db.internal:5432/app',
  'AMQP without a user': 'redis://:s3cr3tPa55w0rd@cache:6379',
  'password in a file': `DB_PASSWORD=${random(16)}`,
  'password in JSON': `"password": "${random(20)}"`,
  'key in YAML': `api_key: ${hex(32)}`,
  'key in code': `const clientSecret = '${random(32)}';`,
};

for (const [name, secret] of Object.entries(credentials)) {
  t.test(`${name} is not published`, async (t) => {
    const texts = [
      secret,
      `The value \`${secret}\` is in the log.`,
      `\`\`\`\n${secret}\n\`\`\``,
      `x${'\u200b'}\n${[...secret].join('\u200b')}`,
      [...secret].map((char) => (/[a-z]/i.test(char) ? `${char}\u2060` : char)).join(''),
      secret.replace(/[!-~]/g, (char) => String.fromCodePoint(char.charCodeAt(0) + 0xfee0)),
      Buffer.from(secret).toString('base64'),
      encodeURIComponent(secret),
    ];
    for (const [index, text] of texts.entries()) {
      t.match(scanOutput(text), { text: '', blockedBy: { code: 'draftContainsSecret' } }, `form ${index}`);
    }
    t.notOk(JSON.stringify(scanOutput(secret)).includes(secret), 'nor in the reason');
    t.ok(scanCode(secret).blockedBy, 'nor in a suggestion');
    const middle = Math.floor(secret.length / 2);
    const split = `${secret.slice(0, middle)}<!-- x -->${secret.slice(middle)}`;
    const joined = scanOutput(split);
    t.ok(joined.blockedBy || !joined.text.includes(secret), 'nor when what parts it is taken out');
  });
}

const known = fc.string({ unit: fc.constantFrom(...letters, '-', '_', '+', '/', '='), minLength: 16, maxLength: 80 });
const dressed: readonly ((secret: string) => string)[] = [
  (secret) => secret,
  (secret) => [...secret].join('\u200b'),
  (secret) => [...secret].join('\u200d'),
  (secret) => [...secret].join('\n'),
  (secret) => secret.replace(/(.{5})/g, '$1 '),
  (secret) => secret.replace(/(.{5})/g, '$1**'),
  (secret) => Buffer.from(secret).toString('base64'),
  (secret) => Buffer.from(secret).toString('base64url'),
  (secret) => Buffer.from(`ab${secret}cd`).toString('base64'),
  (secret) => Buffer.from(`a${secret}`).toString('base64'),
  (secret) => Buffer.from(secret).toString('hex'),
  (secret) => encodeURIComponent(secret),
  (secret) => [...secret].map((char) => `%${char.charCodeAt(0).toString(16)}`).join(''),
  (secret) => [...secret].map((char) => `&#${char.charCodeAt(0)};`).join(''),
  (secret) => [...secret].map((char) => `&#x${char.charCodeAt(0).toString(16)};`).join(''),
];
t.test('a secret of this process is found in every dress', async (t) => {
  fc.assert(
    fc.property(
      known.filter((secret) => secret.replace(/[^A-Za-z0-9]/g, '').length >= 16),
      fc.constantFrom(...dressed),
      fc.constantFrom('', 'see ', '`', 'path/', '=', 'https://x.example/?q='),
      (secret, dress, before) => scanOutput(`${before}${dress(secret)} end`, [secret]).blockedBy !== null,
    ),
    { numRuns: 600 },
  );
  const secret = random(40);
  t.ok(scanOutput(`begins with ${secret.slice(0, 26)}…`, [secret]).blockedBy, 'a good part of it, too');
  const key = pem('pkcs8');
  t.ok(scanOutput(key.split('\n')[5] ?? '', [key]).blockedBy, 'and a line of a key');
  t.notOk(scanOutput('a word: token', ['token', '']).blockedBy, 'what is too short is not looked for');
});

const harmless = [
  'Rotate the `ghp_` token; `github_pat_` and `ghs_` ones, too.',
  'Tokens look like `ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx` or `AKIAIOSFODNN7EXAMPLE`.',
  'The header `-----BEGIN RSA PRIVATE KEY-----` is not checked.',
  'const token = getInstallationTokenForRepository2(owner);',
  'const token = await getV2TokenFromS3Bucket();',
  'password: string; secret?: Buffer; apiKey: process.env.S3_ACCESS_KEY_ID',
  'password = os.environ["DB_PASSWORD_2"], token=${{ secrets.GITHUB_TOKEN }}',
  'secret: projects/123/secrets/database-password/versions/latest',
  'Connect with `postgres://user:password@localhost:5432/db` or `postgres://postgres:postgres@db/app`.',
  'https://user:${TOKEN}@github.com/o/r and https://x-access-token:<token>@github.com',
  'Commit 757107ea0eb2509fc211221cce984b8a37570b6d broke it, see 9f8a7b6c.',
  '"integrity": "sha512-wXR/dYpcqKmfWpEdZjiKJOwCNFndD0DMnrW/cYjVGttEkBfVgcLFHoNrlj47mjOVic9yyNu65alsgF4NQyTa2g=="',
  'id 550e8400-e29b-41d4-a716-446655440000 is used twice',
  '.sk-loading-spinner-container-inner2 { color: red }',
  'Authorization: Bearer <token> must not be logged; `Bearer ${token}` neither.',
  'const tokenCount = 12345678901; const passwordMinLength: number = 12;',
  'The basic authentication-middleware-for-version2 is skipped.',
  'git@github.com:owner/repo.git, mailto:someone@example.com, 12:30:45, http://localhost:8080/a@b',
  'tokenise(), secretary, passwordless; `keyof typeof` and `accessKey=` without a value.',
  'import { createHash } from "node:crypto"; const x = createHash("sha256").update(a).digest("hex");',
  'password=correcthorsebatterystaple is what the test calls it',
];
t.test('ordinary prose and code is not a secret', async (t) => {
  const server = [random(43), `whs-${hex(60)}`];
  for (const text of harmless) t.equal(scanOutput(text, server).blockedBy, null, text);
  for (const text of harmless) t.equal(scanCode(text, server).blockedBy, null, text);
});

t.test('hundreds of kilobytes of any shape are read to their end', async (t) => {
  const length = 200_000;
  const shapes = [
    'a',
    'eyJ',
    '-eyJ',
    'a.',
    'a://',
    ':',
    '`',
    '` `` ',
    '```\n',
    '~~~\n',
    '- ',
    '> ',
    '<',
    '<!--',
    '![',
    '![a](',
    '@',
    '&#',
    'a@',
    'password=',
    'password = ',
    '-----BEGIN PRIVATE KEY-----',
    '%41',
    '[a]: ',
    '\u200b',
    '\ufe0f',
    '/a ',
    '://a?',
    'a/b#1',
    ' \n',
    '\t',
    '| - |\n',
    '\\`',
    '1. ',
    'fix  ',
  ];
  for (const shape of shapes) {
    const text = shape.repeat(Math.floor(length / shape.length));
    const { blockedBy } = scanOutput(text, [random(64)]);
    t.equal(blockedBy, null, JSON.stringify(shape));
  }
});
