/** README's "Sixty seconds", line by line, as a newcomer pastes it: an empty home, no terminal, the built product. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, cpSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { root } from '../../scripts/toolchain.mjs';
import { atTerminal, keys } from '../cli/terminal.ts';
import { blocksOf } from '../docs/tutorial-page.ts';
import { command, makePlace, oratorio, untilNoneRuns } from './harness.ts';

t.setTimeout(600_000);

const cloneLine = 'git clone <this repository> oratorio && cd oratorio';

/** Every line of a fenced shell block between the heading and the next one. */
function pastedLines(): readonly string[] {
  const page = readFileSync(join(root, 'README.md'), 'utf8');
  const [, section = ''] = /\n## Sixty seconds\n([\s\S]*?)\n## /.exec(page) ?? [];
  const blocks = blocksOf(section).filter(({ kind }) => kind !== 'text');
  return blocks.flatMap(({ text }) => text.split('\n').filter((line) => line.trim() !== ''));
}

/** A checkout of its own with the sources and the build of this one: its files stay in the place. */
function checkout(directory: string): string {
  mkdirSync(directory);
  for (const name of ['bin', 'scripts', 'package.json', 'package-lock.json', 'tsconfig.json'])
    cpSync(join(root, name), join(directory, name), { recursive: true, verbatimSymlinks: true });
  for (const name of ['src', 'machines', 'dist', 'node_modules']) symlinkSync(join(root, name), join(directory, name));
  return directory;
}

t.test(
  'regression: each line of the first minute works as pasted, and its last one leaves nothing running',
  async (t) => {
    const place = makePlace(t, 'oratorio-minute-');
    const { ORATORIO_HOME: _, ...env } = place.env;
    const opened = join(place.root, 'opened');
    const browser = join(place.root, 'programs');
    mkdirSync(browser);
    for (const opener of ['xdg-open', 'open']) {
      writeFileSync(join(browser, opener), `#!/bin/sh\necho "$@" >> '${opened}'\n`);
      chmodSync(join(browser, opener), 0o755);
    }
    checkout(join(place.root, 'oratorio'));
    const all = pastedLines();
    // The lines before it need a published release: test/e2e/tarball.test.ts runs them on one of its own.
    const lines = all.slice(all.indexOf(cloneLine));
    t.equal(lines[0], cloneLine);
    t.equal(lines.at(-1)?.split(' #')[0]?.trim(), 'oratorio hub stop');
    const marker = '--- pasted line';
    const script = lines
      .map((line) => (line === cloneLine ? 'cd oratorio' : line))
      .flatMap((line, index) => [`echo "${marker} ${index}"`, line]);
    const child = spawn('bash', ['-e', '-c', script.join('\n')], {
      cwd: place.root,
      env: { ...env, PATH: `${browser}:${env['PATH']}`, npm_config_update_notifier: 'false' },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let printed = '';
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding('utf8').on('data', (text: string) => {
        printed += text;
      });
    const [code] = (await once(child, 'close')) as [number | null];
    t.equal(code, 0, 'every line succeeds', { printed });
    const outputOf = (start: string): string => {
      const index = lines.findIndex((line) => line.startsWith(start));
      return printed.split(`${marker} ${index}\n`)[1]?.split(`${marker} `)[0] ?? '';
    };
    t.match(outputOf('npm start'), /Hub started[\s\S]*ready[\s\S]*oratorio hub stop/);
    t.match(
      outputOf('oratorio up'),
      /Made .*projects\/site a workspace[\s\S]*Hub found[\s\S]*state +ready[\s\S]*page +http:\/\/127\.0\.0\.1:\d+\/w\/\w+\/\n/,
    );
    t.match(outputOf('oratorio chat "hello"'), /Demo model \(offline, no AI\): Hello!/);
    t.match(outputOf('oratorio chat --yes'), /2 of 2 steps done/);
    t.match(readFileSync(join(place.root, 'projects/site/hello.sh'), 'utf8'), /echo hi/);
    t.match(outputOf('oratorio list'), /oratorio-sample[\s\S]*site/);
    t.match(outputOf('oratorio inspect ~'), /http:\/\/127\.0\.0\.1:\d+/);
    t.match(readFileSync(opened, 'utf8'), /open-page\.html/);
    t.match(outputOf('oratorio hub stop'), /has stopped/);
    t.notMatch(printed, /token=/, 'no token is printed without a terminal');
    await untilNoneRuns(place);
  },
);

t.test('npm start names each long step before it begins', async (t) => {
  const place = makePlace(t, 'oratorio-start-');
  const directory = join(place.root, 'oratorio');
  for (const name of ['bin', 'programs', 'node_modules']) mkdirSync(join(directory, name), { recursive: true });
  for (const name of ['scripts', 'package.json', 'package-lock.json'])
    cpSync(join(root, name), join(directory, name), { recursive: true });
  writeFileSync(join(directory, 'programs', 'npm'), '#!/bin/sh\necho installs', { mode: 0o755 });
  writeFileSync(join(directory, 'scripts', 'build.ts'), "console.log('builds');");
  writeFileSync(join(directory, 'bin', 'oratorio.js'), "console.log('starts');");
  // One pipe for both streams, which keeps the order of the lines.
  const child = spawn('/bin/sh', ['-c', 'exec "$0" scripts/start.mjs 2>&1', process.execPath], {
    cwd: directory,
    env: { ...place.env, PATH: `${join(directory, 'programs')}:${place.env['PATH']}` },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let printed = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    printed += text;
  });
  await once(child, 'close');
  t.equal(printed, 'Installing dependencies …\ninstalls\nBuilding …\nbuilds\nstarts\n');
});

t.test('outside of a workspace chat asks before it uses another one, and is refused without a terminal', async (t) => {
  const place = makePlace(t);
  const workspace = place.workspace('site');
  mkdirSync(join(workspace, 'deep', 'er'), { recursive: true });
  t.match(await oratorio(place, ['up', workspace]), { code: 0, stdout: /end it +oratorio stop/ });
  const below = { ...place, root: join(workspace, 'deep', 'er') };
  t.match(await oratorio(below, ['chat', '--yes', 'hello']), {
    code: 0,
    stdout: /Demo model/,
    stderr: `· Workspace ${workspace}: the current directory is in it`,
  });
  for (const argv of [
    ['chat', 'hello'],
    ['chat', '--yes', 'hello'],
    ['exec', 'hello'],
  ]) {
    const { code, stdout, stderr } = await oratorio(place, argv);
    t.equal(code, 4, argv.join(' '));
    t.equal(stdout, '');
    t.match(stderr, /is not an Oratorio workspace.*oratorio init/);
  }
  const outside = { env: place.env, cwd: place.root };
  for (const [answer, code, shown] of [
    ['', 4, '--workspace <dir>'],
    ['y', 0, 'Demo model'],
  ] as const) {
    const chat = atTerminal(t, [process.execPath, command, 'chat', 'hello'], outside);
    await chat.shows(`${place.root} is not an Oratorio workspace.`);
    await chat.answer(`Use ${workspace}, the only one the Hub knows? [y/N]`, answer + keys.enter);
    await chat.shows(shown);
    t.equal((await chat.ended).code, code);
  }
  const unasked = atTerminal(t, [process.execPath, command, 'chat', '--yes', 'hello'], outside);
  t.equal((await unasked.ended).code, 4);
  t.notMatch(unasked.screen(), '[y/N]');
  t.match(await oratorio(below, ['api', '--workspace', workspace]), {
    code: 5,
    stderr: `oratorio stop ${workspace} && oratorio api --workspace ${workspace}`,
  });
});
