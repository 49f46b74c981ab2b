/** `oratorio server init` as a person meets it: at a real terminal, of util-linux's `script`. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { hostname, userInfo } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import t, { type Test } from 'tap';
import { parseEnv } from '../../src/deploy/files/index.ts';
import { screenOf } from './screen.ts';
import { canaries, checkSecrets, image, type Machine, machine, main, privateKey } from './server-setup.ts';
import { atTerminal, hasTerminals, keys, plain } from './terminal.ts';

t.setTimeout(900_000);
if (!hasTerminals()) t.bailout('There is no `script` of util-linux: apt-get install bsdutils');
const page = fileURLToPath(new URL('../../docs/deployment.md', import.meta.url));
const markers = ['<!-- begin transcript -->', '<!-- end transcript -->'] as const;

function interview(t: Test, m: Machine) {
  const node = [process.execPath, '--disable-warning=ExperimentalWarning', '--conditions=development', main];
  const clone = ['--clone-url', `octo/app=${m.repository('octo/app')}`];
  const argv = [...node, 'server', 'init', '--offline', '--image', image, '--port', m.port, ...clone];
  return atTerminal(t, argv, { cwd: m.home, env: { ...m.fake.env, HOME: m.home, ORATORIO_HOME: m.home } });
}

t.test(
  'regression: edge 11 every question is asked, also installation id and key path, and secrets are not shown',
  async (t) => {
    const m = await machine(t);
    const directory = join(m.home, 'oratorio-review');
    m.file('app.private-key.pem', privateKey());
    const terminal = interview(t, m);
    const { answer, shows, type } = terminal;
    await answer('Which repositories?', `octo${keys.enter}`);
    await answer('is not the name of a repository', `/app${keys.enter}`);
    await answer('Which model provider?', keys.enter);
    await answer('Which model?', keys.enter);
    await answer('API key of OpenAI?', `${canaries.modelKey}${keys.enter}`);
    await answer('Id of your GitHub App?', `4711${keys.enter}`);
    await answer("App's private key?", `./none.pem${keys.enter}`);
    await shows('There is no such file.');
    type('\u007f'.repeat('./none.pem'.length));
    type(`./app.private-key.pem${keys.enter}`);
    await answer("App's installation for octo?", `12ab${keys.enter}`);
    await shows('It is a number');
    type('\u007f'.repeat('12ab'.length));
    type(`815${keys.enter}`);
    await answer('Review new pull requests', keys.enter);
    await answer('Write reviews to', keys.enter);
    await answer('Let GitHub deliver webhooks', keys.enter);
    await answer('Set it up like this?', keys.enter);
    await shows('oratorio server doctor');
    t.match(await terminal.ended, { code: 0 });

    const written = terminal.screen();
    t.notOk(written.includes(canaries.modelKey), 'the key is not on the screen');
    t.notOk(plain(written).includes(canaries.modelKey.slice(0, 8)), 'nor its beginning');
    const { values } = parseEnv(readFileSync(join(directory, '.env'), 'utf8'));
    t.equal(values.get('ORATORIO_MODEL_API_KEY'), canaries.modelKey);
    t.equal(values.get('ORATORIO_MODEL'), 'gpt-4o');
    const settings = JSON.parse(readFileSync(join(directory, 'oratorio.config.json'), 'utf8'));
    t.match(settings.Oratorio.GitHub, {
      PrivateKeyPath: '/secrets/github-app.pem',
      InstallationProfiles: [{ Owner: 'octo', InstallationId: 815 }],
    });
    checkSecrets(t, {
      ...m,
      directory,
      stackFile: (path) => readFileSync(join(directory, path), 'utf8'),
      printed: () => written,
    });
    compareTranscript(t, neutral(screenOf(written), m, directory));
  },
);

t.test('regression: edge 11 a key path inside of the containers is accepted without an installation id', async (t) => {
  const m = await machine(t);
  const directory = join(m.home, 'oratorio-review');
  const { answer, shows, ended } = interview(t, m);
  await answer('Which repositories?', `octo/app${keys.enter}`);
  await answer('Which model provider?', keys.enter);
  await answer('Which model?', keys.enter);
  await answer('API key of OpenAI?', `${canaries.modelKey}${keys.enter}`);
  await answer('Id of your GitHub App?', `4711${keys.enter}`);
  await answer("App's private key?", `/secrets/mine.pem${keys.enter}`);
  await answer("App's installation for octo?", keys.enter);
  await answer('Review new pull requests', keys.enter);
  await answer('Write reviews to', keys.enter);
  await answer('Let GitHub deliver webhooks', keys.enter);
  await answer('Set it up like this?', keys.enter);
  await shows('oratorio server doctor');
  t.match(await ended, { code: 0 });
  const { GitHub } = JSON.parse(readFileSync(join(directory, 'oratorio.config.json'), 'utf8')).Oratorio;
  t.equal(GitHub.PrivateKeyPath, '/secrets/mine.pem');
  t.equal(GitHub.InstallationProfiles, undefined);
  t.notOk(existsSync(join(directory, 'secrets/github-app.pem')));
});

t.test('Ctrl-C at a question ends the command without a change', async (t) => {
  const m = await machine(t);
  const terminal = interview(t, m);
  await terminal.answer('Which repositories?', `octo/app${keys.enter}`);
  await terminal.answer('Which model provider?', keys.ctrlC);
  await terminal.shows('nothing was changed');
  t.match(await terminal.ended, { code: 130 });
  t.notOk(existsSync(join(m.home, 'oratorio-review')));
});

t.test('a declined plan is not applied', async (t) => {
  const m = await machine(t);
  t.equal((await m.init('--no-start')).code, 0);
  const argv = [process.execPath, '--disable-warning=ExperimentalWarning', '--conditions=development', main];
  const terminal = atTerminal(t, [...argv, 'server', 'webhook', 'enable', '--dir', m.directory], {
    cwd: m.home,
    env: { ...m.fake.env, HOME: m.home, ORATORIO_HOME: m.home },
  });
  await terminal.answer('Public DNS name', `localhost${keys.enter}`);
  await terminal.shows('localhost”');
  terminal.type('\u007f'.repeat('localhost'.length));
  terminal.type(`hooks.oratorio.dev${keys.enter}`);
  await terminal.answer('Enable it like this?', 'n');
  await terminal.shows('nothing was changed');
  t.match(await terminal.ended, { code: 130 });
  t.notOk(existsSync(join(m.directory, 'Caddyfile')));
});

/** Replaces the parts of a screen that differ by machine, user and speed. */
function neutral(screen: string, m: Machine, directory: string): string {
  const lines = screen
    .replaceAll(m.repository('octo/app'), 'https://github.com/octo/app.git')
    .replaceAll(directory, '/srv/oratorio-review')
    .replaceAll(`${userInfo().username}@${hostname()}`, 'you@host')
    .replaceAll(m.port, '5087')
    .replaceAll(/ports 5087, \d+ and \d+/g, 'ports 5087, 19100 and 18080')
    .replaceAll(/has port \d+ and \d+ free/g, 'has port 19100 and 18080 free')
    .replaceAll(/ \(\d+\.\d s\)$/gm, '')
    .split('\n')
    // Only root gives files away.
    .filter((line) => !/^ {4}give /.test(line));
  return ['```text', '$ oratorio server init', ...lines.join('\n').trim().split('\n'), '```'].join('\n');
}

/** Checks that the page quotes the real dialog. `ORATORIO_WRITE_TRANSCRIPT=1` updates the page. */
function compareTranscript(t: Test, transcript: string): void {
  const text = readFileSync(page, 'utf8');
  const [before = '', rest = ''] = text.split(`${markers[0]}\n`);
  const [shown, after = ''] = rest.split(`\n${markers[1]}`);
  if (process.env['ORATORIO_WRITE_TRANSCRIPT'] === '1')
    writeFileSync(page, `${before}${markers[0]}\n${transcript}\n${markers[1]}${after}`);
  else t.equal(transcript, shown, 'docs/deployment.md shows it: ORATORIO_WRITE_TRANSCRIPT=1 writes it anew');
}
