/** Secrets of a stack whose `.env` is odd: no command prints one, keeps one, or shows a kept one later. */
import { appendFileSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { parseEnv } from '../../src/deploy/files/index.ts';
import { image, type Machine, machine } from './server-setup.ts';

t.setTimeout(900_000);

/** Compose as it fails: with the rest of the line, and of the file, in its words. */
const quoting = (m: Machine, line: string) => ({
  when: 'config',
  exitCode: 1,
  stderr: `failed to read ${m.directory}/.env: line 11: unexpected character "\\n" in variable name near "${line}"\n`,
});

const commands = [
  ['doctor', '--offline'],
  ['restart'],
  ['upgrade', '--yes', '--image', image],
  ['webhook', 'enable', '--yes', '--public-host', 'hooks.oratorio.dev'],
  ['status'],
  ['logs'],
] as const;

/** Runs every command with an odd `.env`, then `status` with the mended one, and searches all output and the journal. */
async function searchEverything(t: Test, m: Machine, secret: string, name: string, odd: string): Promise<void> {
  const path = join(m.directory, '.env');
  const mended = m.stackFile('.env');
  m.fake.change({
    answers: [quoting(m, odd.slice(odd.indexOf(secret)).split('\n')[0] ?? '')],
    services: { backend: { log: [`token ${secret} is refused`] }, agent: { log: [`token ${secret} is refused`] } },
  });
  writeFileSync(path, odd);
  for (const argv of commands)
    for (const json of [[], ['--json']]) {
      await m.cli('server', ...argv, ...json, '--dir', m.directory);
      writeFileSync(path, odd);
    }
  m.fake.change({ answers: [] });
  writeFileSync(path, mended);
  await m.cli('server', 'status', '--json', '--dir', m.directory);
  t.notOk(m.printed().includes(secret), `${name}: not printed`);
  t.notOk(m.stackFile('.server/journal.jsonl').includes(secret), `${name}: not in the journal`);
}

t.test('regression: H44 no command prints or keeps a secret of an invalid .env', async (t) => {
  const m = await machine(t);
  t.match(await m.init(), { code: 0 });
  const env = m.stackFile('.env');
  const secret = parseEnv(env).values.get('ORATORIO_AGENT_TOKEN') ?? '';
  t.ok(secret.length > 20);
  const line = `ORATORIO_AGENT_TOKEN='${secret}'`;
  for (const [name, odd] of [
    ['closing quote dropped', env.replace(line, line.slice(0, -1))],
    ['removed', env.replace(`${line}\n`, '')],
  ] as const)
    await searchEverything(t, m, secret, name, odd);
  t.match(m.printed(), /Line \d+ of \.env \(ORATORIO_AGENT_TOKEN\)/, 'the faulty line is named');
  t.match(m.printed(), /token \[redacted\] is refused/, 'logs were read');
});

t.test('a secret that an earlier version put into the journal is not shown', async (t) => {
  const m = await machine(t);
  t.match(await m.init(), { code: 0 });
  const secret = parseEnv(m.stackFile('.env')).values.get('ORATORIO_AGENT_TOKEN') ?? '';
  const [at, change] = ['2026-01-01T00:00:00.000Z', '20260101T000000000Z-00000000'];
  const failure = { code: 'compositionInvalid', message: `unterminated quoted value '${secret}` };
  const record = { change, command: 'restart', begunAt: at, at, outcome: 'undone', failure, owed: [] };
  appendFileSync(join(m.directory, '.server/journal.jsonl'), `${JSON.stringify({ type: 'ended', record })}\n`);
  const { stdout } = await m.cli('server', 'status', '--json', '--dir', m.directory);
  t.match(stdout, /unterminated quoted value '\[redacted\]/);
  t.notOk(stdout.includes(secret));
});

t.test('remembered secrets are readable by their owner only', async (t) => {
  const m = await machine(t);
  t.match(await m.init('--no-start'), { code: 0 });
  const path = join(m.directory, '.server/known-secrets.json');
  t.equal(statSync(path).mode & 0o777, 0o600);
  const token = parseEnv(m.stackFile('.env')).values.get('ORATORIO_AGENT_TOKEN') ?? '';
  const remembered: string[] = JSON.parse(readFileSync(path, 'utf8'));
  t.ok(remembered.map((value) => Buffer.from(value, 'base64').toString()).includes(token));
});
