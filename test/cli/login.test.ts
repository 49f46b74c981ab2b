/** `oratorio login` and `oratorio model` against stand-ins of each provider; typed input at a real terminal. */
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { Writable } from 'node:stream';
import t, { type Test } from 'tap';
import { nearestNames } from '../../src/agent/index.ts';
import { runCommandLine } from '../../src/cli/run.ts';
import { type KnownProviderName, knownProviderNames, knownProviders } from '../../src/protocol/index.ts';
import { program, programEnvironment } from '../programs.ts';
import { type Dialect, type Fake, fakeKey, startFake } from '../providers/fake.ts';
import { anthropicFake } from '../providers/fakes/anthropic.ts';
import { chatFake, chatServices } from '../providers/fakes/chat.ts';
import { googleFake } from '../providers/fakes/google.ts';
import { responsesFake } from '../providers/fakes/responses.ts';
import { atTerminal, hasTerminals, keys, type Terminal } from './terminal.ts';

t.setTimeout(900_000);
if (!hasTerminals()) t.bailout('There is no `script` of util-linux: apt-get install bsdutils');
const main = program('src/cli/main.ts');

const native: Readonly<Record<string, () => Dialect>> = {
  openai: responsesFake,
  anthropic: anthropicFake,
  google: googleFake,
};

/** Stand-in for a provider that `login` knows. */
function dialectOf(name: KnownProviderName): Dialect {
  const own = native[name];
  if (own) return own();
  const rules = chatServices.find((each) => each.name === (name === 'other' ? 'openai' : name));
  if (!rules) throw new Error(`There is no stand-in for ${name}`);
  return chatFake(rules);
}

interface Place {
  readonly home: string;
  readonly configFile: string;
  readonly settings: () => Readonly<Record<string, unknown>>;
  readonly file: (name: string, text: string) => string;
  /** Runs a command line in this process. */
  readonly cli: (
    ...argv: string[]
  ) => Promise<{ readonly code: number; readonly stdout: string; readonly stderr: string }>;
  readonly terminal: (t: Test, ...argv: string[]) => Terminal;
}

class Collected extends Writable {
  text = '';
  override _write(chunk: Buffer, _: BufferEncoding, done: () => void): void {
    this.text += chunk.toString();
    done();
  }
}

function place(t: Test): Place {
  const home = mkdtempSync(join(tmpdir(), 'login-'));
  t.teardown(() => rmSync(home, { recursive: true, force: true }));
  const env = { ...programEnvironment, HOME: home, ORATORIO_HOME: join(home, 'o') };
  const configFile = join(home, 'o', 'config.json');
  return {
    home,
    configFile,
    settings: () => JSON.parse(readFileSync(configFile, 'utf8')),
    file(name, text) {
      const path = join(home, name);
      writeFileSync(path, text, { mode: 0o600 });
      return path;
    },
    async cli(...argv) {
      const [stdout, stderr] = [new Collected(), new Collected()];
      const interruption = () => ({ signal: new AbortController().signal, exit: () => 'interrupted' as const });
      const code = await runCommandLine(argv, { stdout, stderr, env, cwd: home, interruption });
      return { code, stdout: stdout.text, stderr: stderr.text };
    },
    terminal(t, ...argv) {
      const node = [process.execPath, '--disable-warning=ExperimentalWarning', '--conditions=development', main];
      return atTerminal(t, [...node, ...argv], { cwd: home, env });
    },
  };
}

/** A provider of each kind, and one that needs no key; the others are connected without a terminal. */
const atTerminals: ReadonlySet<KnownProviderName> = new Set(['openai', 'anthropic', 'google', 'deepseek', 'ollama']);

t.test('a log-in for the provider in force keeps its address and model, and says so', async (t) => {
  const fake = await startFake(t, responsesFake());
  const { cli, configFile, settings, file, home } = place(t);
  mkdirSync(join(home, 'o'), { mode: 0o700 });
  const before = { Provider: 'openai', EndPoint: fake.endPoint, Model: 'gpt-4.1', ApiKey: 'old', Telemetry: {} };
  writeFileSync(configFile, JSON.stringify(before), { mode: 0o600 });
  const { code, stdout, stderr } = await cli('login', 'openai', '--api-key-file', file('key', fakeKey));
  t.equal(code, 0, stderr);
  t.same(settings(), { ...before, ApiKey: fakeKey });
  t.match(stdout + stderr, `EndPoint ${fake.endPoint}`);
  t.match(stdout + stderr, 'Model gpt-4.1');
  const chosen = await cli('login', 'openai', '--api-key-file', file('key', fakeKey), '--model', 'gpt-6-sol');
  t.equal(chosen.code, 0, chosen.stderr);
  t.match(settings(), { EndPoint: fake.endPoint, Model: 'gpt-6-sol' }, 'an option changes its setting alone');
  const other = await cli('login', 'anthropic', '--api-key-file', file('key', fakeKey), '--no-test');
  t.equal(other.code, 0, other.stderr);
  t.match(settings(), { Provider: 'anthropic', EndPoint: undefined, Model: knownProviders.anthropic.model });
});

for (const name of knownProviderNames) {
  const where = atTerminals.has(name) ? 'at a terminal, ' : '';
  t.test(`${where}login connects ${name} after one request, and the key is not shown`, async (t) => {
    const { cli, terminal, settings, configFile, file } = place(t);
    const dialect = dialectOf(name);
    const fake = await startFake(t, dialect);
    const needsKey = 'keyPage' in knownProviders[name];
    const given = ['login', name, '--end-point', fake.endPoint];
    const key = () => ['--api-key-file', file('key', fakeKey)];
    let shown: string;
    if (atTerminals.has(name)) {
      const { answer, shows, ended, screen } = terminal(t, ...given, ...(needsKey ? [] : key()));
      if (needsKey) await answer('Key (', `${fakeKey}${keys.enter}`);
      await answer('Which model?', keys.enter);
      await shows('answers; first words after');
      t.match(await ended, { code: 0 });
      shown = screen();
    } else {
      const { code, stdout, stderr } = await cli(...given, ...key(), '--model', dialect.models[0] ?? '');
      shown = `${stdout}${stderr}`;
      t.match(shown, 'answers; first words after');
      t.equal(code, 0);
    }
    t.match(settings(), { Provider: knownProviders[name].kind, EndPoint: fake.endPoint, ApiKey: fakeKey });
    t.ok(dialect.models.includes(String(settings()['Model'])), 'the model is one that the provider lists');
    t.equal(statSync(configFile).mode & 0o777, 0o600);
    t.equal(fake.answered.length, 1);
    t.notOk(shown.includes(fakeKey.slice(0, 12)));
  });
}

t.test('at a terminal, login without a provider asks for it, and for the URL of an unknown one', async (t) => {
  const { terminal, settings } = place(t);
  const fake = await startFake(t, dialectOf('other'));
  const { answer, shows, ended } = terminal(t, 'login', '--no-test');
  await answer('Which model provider?', keys.down.repeat(knownProviderNames.indexOf('other')) + keys.enter);
  await answer('Base URL', `localhost${keys.enter}`);
  await answer('It must be an http or https URL.', '\u007f'.repeat(9) + fake.endPoint + keys.enter);
  await answer('Key (empty', `${fakeKey}${keys.enter}`);
  await answer('Which model?', keys.down + keys.down + keys.enter);
  await answer('Name of the model', `my-model${keys.enter}`);
  await shows('Saved to');
  t.match(await ended, { code: 0 });
  t.match(settings(), { Provider: 'openai-compatible', EndPoint: fake.endPoint, Model: 'my-model' });
  t.equal(fake.requests.length, 0);
});

interface Wrong {
  readonly of: string;
  /** Changes the input, or the answers of the provider. */
  readonly prepare: (fake: Fake) => { readonly endPoint?: string; readonly key?: string; readonly model?: string };
  readonly code: string;
  readonly says: RegExp;
  readonly exit: number;
}

const wrongs: readonly Wrong[] = [
  {
    of: 'a wrong key',
    prepare: () => ({ key: 'sk-wrong' }),
    code: 'upstreamUnauthorized',
    says: /The key was refused: check that it is complete/,
    exit: 8,
  },
  {
    of: 'a wrong port',
    prepare: ({ endPoint }) => ({ endPoint: endPoint.replace(/:\d+/, ':9') }),
    code: 'upstreamUnreachable',
    says: /Nothing listens there: start the server, or check host and port/,
    exit: 1,
  },
  {
    of: 'a wrong path in the URL',
    prepare: ({ endPoint }) => ({ endPoint: `${new URL(endPoint).origin}/wrong/path` }),
    code: 'upstreamRejected',
    says: /Nothing is served at this path. Check the end point .* most end in \/v1/,
    exit: 1,
  },
  {
    of: 'a wrong model',
    prepare: () => ({ model: 'no-such-model' }),
    code: 'unknownModel',
    says: /The provider lists: .*oratorio model list/,
    exit: 1,
  },
  {
    of: 'an account without credit',
    prepare({ faults }) {
      const error = {
        message: 'You exceeded your current quota, please check your plan and billing details.',
        type: 'insufficient_quota',
        code: 'insufficient_quota',
        status: 'RESOURCE_EXHAUSTED',
      };
      faults.push({ status: 429, body: JSON.stringify({ type: 'error', error }) });
      return {};
    },
    code: 'upstreamQuotaExceeded',
    says: /no credit or quota left: add credit/,
    exit: 1,
  },
];

for (const name of ['openai', 'anthropic', 'google', 'deepseek'] as const) {
  for (const wrong of wrongs) {
    t.test(`login to ${name} with ${wrong.of} fails with what to do, and changes nothing`, async (t) => {
      const { cli, configFile, file } = place(t);
      const dialect = dialectOf(name);
      const fake = await startFake(t, dialect);
      const [first = ''] = dialect.models;
      const { endPoint = fake.endPoint, key = fakeKey, model = first } = wrong.prepare(fake);
      const given = ['--end-point', endPoint, '--api-key-file', file('key', key), '--model', model];
      const { code, stdout, stderr } = await cli('login', name, ...given, '--json');
      t.equal(code, wrong.exit);
      t.match(JSON.parse(stdout).error, { code: wrong.code });
      t.match(stderr, wrong.says);
      t.notOk(existsSync(configFile));
      t.notOk(`${stdout}${stderr}`.includes(key));
    });
  }
}

t.test('at a terminal, a refused key of a file is explained, and saved only when the user wants it', async (t) => {
  for (const [wish, isSaved] of [
    [keys.enter, false],
    [`y`, true],
  ] as const) {
    const { terminal, configFile, file } = place(t);
    const fake = await startFake(t, dialectOf('anthropic'));
    const given = ['--end-point', fake.endPoint, '--api-key-file', file('key', 'sk-wrong')];
    const { answer, shows, ended } = terminal(t, 'login', 'anthropic', ...given);
    await answer('Name of the model', keys.enter);
    await shows('The key was refused');
    await answer('Save it anyway?', wish);
    t.match(await ended, { code: isSaved ? 0 : 130 });
    t.equal(existsSync(configFile), isSaved);
  }
});

t.test('a key comes from a file, a variable or a command, and a bad one is refused before any request', async (t) => {
  const { cli, settings, file, configFile } = place(t);
  const fake = await startFake(t, dialectOf('openai'));
  const given = ['login', 'openai', '--end-point', fake.endPoint, '--model', 'gpt-6-sol'];
  const bad: readonly (readonly [readonly string[], RegExp])[] = [
    [[], /There is no key: give --api-key-file/],
    [['--api-key-file', 'none'], /none does not exist/],
    [['--api-key-file', file('two', 'two words')], /holds no key. A key is one word/],
    [['--api-key-file', file('empty', '')], /holds no key/],
    [['--api-key-env', 'NOT_SET_ANYWHERE'], /NOT_SET_ANYWHERE is not set/],
    [['--api-key-env', '${X}'], /takes the name of a variable/],
    [['--api-key-command', ' '], /needs a program/],
    [['--api-key-env', 'A', '--api-key-command', 'b'], /exclude each other/],
    [['--api-key-command', 'false'], /ApiKeyCommand failed: it ended with 1/],
  ];
  for (const [options, says] of bad) {
    const { code, stderr } = await cli(...given, ...options);
    t.not(code, 0, says.source);
    t.match(stderr, says);
  }
  t.equal(fake.requests.length, 0);
  t.notOk(existsSync(configFile));
  const printer = `cat ${file('printed', `${fakeKey}\n`)}`;
  t.match(await cli(...given, '--api-key-command', printer), { code: 0 });
  t.strictSame(settings()['ApiKeyCommand'], printer.split(' '));
  t.equal(settings()['ApiKey'], undefined);
  t.match(await cli(...given, '--api-key-file', file('key', ` ${fakeKey}\n`)), { code: 0 });
  t.match(settings(), { ApiKey: fakeKey, ApiKeyCommand: undefined }, 'a later login replaces the earlier one');
});

t.test('login keeps the other settings of the configuration, including those in a different spelling', async (t) => {
  const { cli, file, configFile, home } = place(t);
  t.match(await cli('login', 'ollama', '--model', 'llama3.3', '--no-test'), { code: 0 });
  writeFileSync(configFile, '{\n  "model": "old",\n  "Tools": { "Web": { "Enabled": false } }\n}\n');
  const key = file('key', fakeKey);
  t.match(await cli('login', 'mistral', '--api-key-file', key, '--model', 'm', '--no-test'), { code: 0 });
  const text = readFileSync(configFile, 'utf8');
  t.match(text, /^\{\n {2}"model": "m",/);
  t.match(text, /"Tools": \{ "Web": \{ "Enabled": false \} \}/);
  writeFileSync(configFile, '{ broken');
  t.match(await cli('login', 'ollama', '--model', 'x', '--no-test'), { code: 1, stderr: /Correct the file/ });
  t.equal(readFileSync(configFile, 'utf8'), '{ broken');
  t.notOk(existsSync(join(home, 'o', 'login-offered')));
});

t.test('model shows the effective settings and their sources, never a key', async (t) => {
  const { cli, file } = place(t);
  t.match(await cli('model'), { code: 0, stdout: /demo \(nothing is connected\)/, stderr: /oratorio login/ });
  const given = ['--api-key-file', file('key', fakeKey), '--model', 'claude-sonnet-5-5', '--no-test'];
  t.match(await cli('login', 'anthropic', ...given), { code: 0 });
  t.match(await cli('model', 'set', 'claude-opus-4-5', '--effort', 'high', '--json'), { code: 0 });
  const { stdout } = await cli('model');
  t.match(stdout, /model +claude-opus-4-5 \(.*config\.json\)/);
  t.match(stdout, /effort +high \(.*config\.json\)/);
  t.match(stdout, /window +[\d,]+ tokens \(the catalogue\)/);
  t.match(stdout, /price +\$[\d.]+ in, \$[\d.]+ out/);
  t.match(stdout, /key +set \(.*config\.json\)/);
  t.match(stdout, /sandbox +(auto, without network \(.+\)|none: .+ \(auto\))/);
  t.notOk(stdout.includes(fakeKey));
  const document = JSON.parse((await cli('model', '--json')).stdout);
  t.match(document, { workspace: null, provider: { value: 'anthropic' }, effort: { value: 'high' } });
  t.match(document, { sandbox: { mode: 'auto', network: 'deny' } });
});

t.test('a refused key is named with the host, the file and the command for that file', async (t) => {
  const { cli, configFile } = place(t);
  const fake = await startFake(t, dialectOf('openai'));
  const { host } = new URL(fake.endPoint);
  mkdirSync(dirname(configFile), { recursive: true, mode: 0o700 });
  const test = async (settings: object) => {
    writeFileSync(configFile, JSON.stringify({ EndPoint: fake.endPoint, Model: 'gpt-6-sol', ...settings }));
    const { stderr } = await cli('model', 'test');
    return stderr;
  };
  const own = await test({ Provider: 'openai', ApiKey: 'sk-wrong' });
  t.ok(own.includes(`The upstream at ${host} refuses the key of ${configFile} (401`), own);
  t.match(own, /oratorio login/);
  const named = { Kind: 'openai', EndPoint: fake.endPoint, ApiKey: 'sk-wrong' };
  const other = await test({ Providers: { other: named }, Model: 'other/gpt-6-sol' });
  t.ok(other.includes(`refuses the key of ${configFile} (401`), other);
  t.match(other, /Correct Providers\.other there, then: oratorio restart/);
  t.notMatch(
    await test({ Provider: 'openai', ApiKey: fakeKey }),
    /refuses/,
    'positive control: the right key is taken',
  );
});

t.test('model shows an address without its user name and password', async (t) => {
  const { cli, configFile } = place(t);
  mkdirSync(dirname(configFile), { recursive: true, mode: 0o700 });
  for (const address of [
    'https://u:hush-hush@h.example/v1',
    'http://[::1:hush-hush@h.example',
    'http:/u:hush-hush@h/',
  ]) {
    writeFileSync(configFile, JSON.stringify({ EndPoint: address, Model: 'm' }));
    for (const args of [['model'], ['model', '--json']]) {
      const { code, stdout, stderr } = await cli(...args);
      t.equal(code, 0, stderr);
      t.match(stdout, /…@h/, 'positive control: the host is shown');
      t.notMatch(`${stdout}${stderr}`, 'hush-hush');
    }
  }
});

t.test('model list has the models of the provider with their facts; model test sends one request', async (t) => {
  const { cli, file } = place(t);
  const fake = await startFake(t, dialectOf('openai'));
  const given = ['--end-point', fake.endPoint, '--api-key-file', file('key', fakeKey), '--model', 'gpt-6-sol'];
  t.match(await cli('login', 'openai', ...given, '--no-test'), { code: 0 });
  const { stdout } = await cli('model', 'list');
  t.match(stdout, /\* +gpt-6-sol +272k +128k +yes +\$2 in, \$10 out/);
  const { models, current } = JSON.parse((await cli('model', 'list', '--json')).stdout);
  t.equal(current, 'gpt-6-sol');
  t.match(
    models.find(({ id }: { id: string }) => id === 'gpt-6-sol'),
    { provider: 'openai', price: { input: 2 } },
  );
  t.match(await cli('model', 'set', 'gpt-7'), { code: 0, stderr: /does not list gpt-7/ });
  t.match(await cli('model', 'test'), { code: 1, stderr: /The provider lists: / });
  t.match(await cli('model', 'set', 'gpt-6-sol'), { code: 0 });
  t.match(await cli('model', 'test', '--json'), { code: 0, stdout: /"firstTokenMs":/ });
});

t.test('regression: the test of the demo model does not warn that it cannot call tools', async (t) => {
  const { stdout, stderr } = await place(t).cli('model', 'test');
  t.match(stdout, '✔ demo calls tools');
  t.equal(stderr, '');
});

t.test('model list --refresh reads windows and prices; a list that cannot be read changes nothing', async (t) => {
  const { cli, home } = place(t);
  let body: unknown = {};
  const server = createServer((_, response) => response.end(typeof body === 'string' ? body : JSON.stringify(body)));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => server.close());
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/api.json`;
  const refresh = () => cli('model', 'list', '--refresh', '--from', url);
  const model = {
    id: 'gpt-6-sol',
    reasoning: true,
    tool_call: true,
    modalities: { input: ['text', 'image'] },
    cost: { input: 1.5, output: 9, cache_read: 0.15, context_over_200k: { input: 3, output: 18 } },
    limit: { context: 500_000, output: 100_000 },
  };
  body = { openai: { id: 'openai', models: { 'gpt-6-sol': model, bad: { id: 7 } } }, unheard: { models: {} } };
  t.match(await refresh(), { code: 0, stderr: /1 models of 1 providers/ });
  const file = join(home, 'o', 'models.json');
  t.equal(statSync(file).mode & 0o777, 0o600);
  t.match(await cli('login', 'openai', '--api-key-env', 'HOME', '--model', 'gpt-6-sol', '--no-test'), { code: 0 });
  const { stdout } = await cli('model');
  t.match(stdout, /window +500,000 tokens \(the refreshed catalogue\)/);
  t.match(stdout, /price +\$1.5 in, \$9 out, \$0.15 cached \(the refreshed catalogue\)/);
  t.match(stdout, /key +of the environment variable HOME/);
  const before = readFileSync(file, 'utf8');
  for (const other of ['<html>', {}, { openai: { models: {} } }, [], 'x'.repeat(21_000_000)]) {
    body = other;
    t.match(await refresh(), { code: 1, stderr: /catalogue is unchanged/ });
  }
  t.equal(readFileSync(file, 'utf8'), before);
});

t.test('the names nearest to a wrong one come first', (t) => {
  const names = ['gpt-4o', 'claude-sonnet-5-5', 'claude-opus-4-5', 'gemini-3.8-flash', 'o3'];
  t.equal(nearestNames('claude-sonet-5.5', names)[0], 'claude-sonnet-5-5');
  t.equal(nearestNames('gemini-flash', names)[0], 'gemini-3.8-flash');
  t.equal(nearestNames('', names).length, 3);
  t.end();
});
