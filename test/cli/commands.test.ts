/** Whole command lines, against no Hub and against a stand-in. Where the process itself matters, in one of their own. */
import { type SpawnOptions, spawn, spawnSync } from 'node:child_process';
import {
  chmodSync,
  closeSync,
  existsSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';
import { Writable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import t, { type Test } from 'tap';
import { commands } from '../../src/cli/commands.ts';
import { helpGroups, printHelp } from '../../src/cli/help.ts';
import { cliReference } from '../../src/cli/reference.ts';
import { runCommandLine } from '../../src/cli/run.ts';
import { version } from '../../src/protocol/index.ts';
import { fakeHub, lockOf, recordOf, sendJson, statusOf, writeLock } from '../client/fake-hub.ts';
import { program, programEnvironment } from '../programs.ts';

const main = program('src/cli/main.ts');

interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

function start(home: string, argv: readonly string[], options: SpawnOptions = {}) {
  const args = ['--disable-warning=ExperimentalWarning', main, ...argv];
  const env = { ...programEnvironment, HOME: home, ORATORIO_HOME: home, ...options.env };
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'pipe'], cwd: home, ...options, env });
  let [stdout, stderr] = ['', ''];
  child.stdout?.setEncoding('utf8').on('data', (text: string) => {
    stdout += text;
  });
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    stderr += text;
  });
  const ended = new Promise<Ended>((resolve) => child.once('close', (code) => resolve({ code, stdout, stderr })));
  return { child, ended };
}

/** Runs a command line in this process. */
async function cli(home: string, ...argv: string[]): Promise<Ended> {
  const [stdout, stderr] = [new Collected(), new Collected()];
  const env = { ...programEnvironment, HOME: home, ORATORIO_HOME: home };
  const interruption = () => ({ signal: new AbortController().signal, exit: () => 'interrupted' as const });
  const code = await runCommandLine(argv, { stdout, stderr, env, cwd: home, interruption });
  return { code, stdout: stdout.text, stderr: stderr.text };
}

class Collected extends Writable {
  text = '';
  override _write(chunk: Buffer, _: BufferEncoding, done: () => void): void {
    this.text += String(chunk);
    done();
  }
}

function temporaryHome(t: Test): string {
  const home = realpathSync(mkdtempSync(join(tmpdir(), 'oratorio-cli-')));
  t.teardown(() => rmSync(home, { recursive: true, force: true }));
  return home;
}

t.test('without a usable HOME the program uses the account’s home', async (t) => {
  const home = temporaryHome(t);
  const expected = join(userInfo().homedir, '.oratorio');
  for (const HOME of ['', undefined]) {
    const { stdout } = await start(home, ['doctor'], { env: { HOME, ORATORIO_HOME: '' } }).ended;
    t.match(stdout, expected, String(HOME));
  }
  t.same(readdirSync(home), [], 'no state below the current directory');
});

const otherUser = { uid: 54_321, gid: 54_321 };
const canBeOther = process.getuid?.() === 0 && spawnSync('test', ['-r', main], otherUser).status === 0;
t.test(
  'a user without an account gets an error with the next step, and no state below the current directory',
  { skip: !canBeOther && 'only root can run a program that others may read as another user' },
  async (t) => {
    const home = temporaryHome(t);
    chmodSync(home, 0o777);
    for (const [HOME, ...argv] of [
      ['', 'init'],
      ['', 'hub', 'stop'],
      [undefined, 'list'],
    ] as const) {
      const env = { HOME, ORATORIO_HOME: '' };
      t.match(await start(home, argv, { ...otherUser, env }).ended, {
        code: 1,
        stderr: /HOME is not an absolute path\. Set HOME or ORATORIO_HOME\./,
      });
    }
    t.same(readdirSync(home), []);
  },
);

t.test('the program and each command print their help', async (t) => {
  const home = temporaryHome(t);
  const help = await start(home, ['--help']).ended;
  t.match(help, { code: 0, stderr: '' });
  const listed = helpGroups.flatMap(([, words]) => words);
  const known = [...new Set(commands.map(({ name }) => name.split(' ')[0]))];
  t.same(listed.toSorted(), known.toSorted(), 'the help lists each first word once');
  for (const word of listed) t.match(help.stdout, `    ${word} `);
  for (const [title] of helpGroups) t.match(help.stdout, `\n  ${title}\n`);
  t.match(help.stdout, /Exit codes[\s\S]*130[\s\S]*ORATORIO_HOME/);
  for (const command of commands) {
    const log = t.capture(console, 'log');
    printHelp(version, command);
    log.restore();
    const text = String(log().map(({ args }) => args.join(' ')));
    t.match(text, `$ oratorio ${command.name}`);
    t.match(text, /Examples/);
    for (const option of command.options) t.match(text, `--${option.name}`);
  }
  t.match(await start(home, ['hub', 'stop', '--help']).ended, { code: 0, stdout: /\$ oratorio hub stop --detach/ });
  t.match(await start(home, ['hosts', '--help']).ended, { code: 0, stdout: /Subcommands\n +hosts add +Add a machine/ });
});

t.test('docs/cli.md equals the document generated from the command table', async (t) => {
  const file = fileURLToPath(new URL('../../docs/cli.md', import.meta.url));
  t.equal(readFileSync(file, 'utf8'), cliReference());
});

t.test('commands without a Hub have their exit codes', async (t) => {
  const home = temporaryHome(t);
  t.match(await start(home, ['nonsense']).ended, { code: 2, stdout: '', stderr: /no command nonsense/ });
  t.match(await cli(home, 'list', '--no-start'), {
    code: 3,
    stdout: '',
    stderr: /no Hub is running[\s\S]*oratorio hub/,
  });
  t.match(await cli(home, 'hub', 'status'), { code: 3, stderr: /To start one: oratorio up/ });
  t.match(await cli(home, 'hub', 'stop'), { code: 0, stdout: 'No Hub is running.\n' });
  t.match(await cli(home, 'version'), { code: 0, stdout: `${version}\n`, stderr: '' });
  const json = await cli(home, 'list', '--no-start', '--json');
  t.match(JSON.parse(json.stdout), { error: { code: 'hubUnavailable', details: null } });
  t.notOk(existsSync(join(home, 'hub')), 'nothing was written');
});

t.test('init creates a workspace, and up without a workspace requires --init before it starts anything', async (t) => {
  const home = temporaryHome(t);
  t.match(await cli(home, 'up', 'site'), { code: 4, stderr: new RegExp(`oratorio up ${home}/site --init`) });
  t.notOk(existsSync(join(home, 'hub')), 'no Hub was started for it');
  t.match(await cli(home, 'init', 'site'), { code: 0, stdout: /is a workspace now/ });
  t.ok(existsSync(join(home, 'site', '.oratorio', 'config.json')));
  t.match(JSON.parse((await cli(home, 'init', 'site', '--json')).stdout), {
    workspacePath: join(home, 'site'),
    created: false,
  });
  writeFileSync(join(home, 'file'), '');
  t.match(await cli(home, 'init', 'file'), { code: 1, stderr: /is not a directory/ });
});

t.test('regression: a command for this machine refuses a workspace of a host and names ssh', async (t) => {
  const home = temporaryHome(t);
  for (const command of ['inspect', 'logs', 'restart'])
    t.match(
      await cli(home, command, 'build:/srv/site', '--no-start'),
      { code: 2, stderr: /host build\.\n +Run .* over ssh/ },
      command,
    );
  t.notOk(existsSync(join(home, 'hub')), 'no Hub was started for it');
});

t.test('completion scripts are valid shell', async (t) => {
  const home = temporaryHome(t);
  for (const shell of ['bash', 'zsh', 'fish']) {
    const { code, stdout } = await cli(home, 'completion', shell);
    t.equal(code, 0);
    for (const { name } of commands) t.match(stdout, name.split(' ').at(-1) ?? '', `${shell} knows ${name}`);
    // A shell that is not installed cannot judge; bash always is where these tests run.
    const check = spawnSync(shell, ['-n'], { input: stdout, encoding: 'utf8' });
    if (!check.error) t.match(check, { status: 0, stderr: '' }, `${shell} -n`);
  }
  t.match(await cli(home, 'completion'), { code: 2, stderr: /Say which shell/ });
});

t.test('bash completes commands, subcommands, options and choices', async (t) => {
  const script = (await cli(temporaryHome(t), 'completion', 'bash')).stdout;
  const complete = (...words: string[]): string[] => {
    const probe = `${script}\nCOMP_WORDS=(oratorio ${words.map((word) => `'${word}'`).join(' ')}); COMP_CWORD=${words.length}; _oratorio; printf '%s\\n' "\${COMPREPLY[@]}"`;
    const { stdout } = spawnSync('bash', ['--norc', '-c', probe], { encoding: 'utf8', cwd: '/' });
    return stdout.split('\n').filter(Boolean);
  };
  t.strictSame(complete('ch'), ['chat']);
  t.strictSame(complete('hub', 'st'), ['status', 'stop']);
  t.strictSame(complete('hub', 'stop', '--d'), ['--detach']);
  t.strictSame(complete('machines', 'hub', '--format', ''), ['mermaid', 'json', 'svg']);
  t.strictSame(complete('up', '--in'), ['--init', '--in']);
  t.ok(complete('place', '.', 'cont').includes('container'));
  t.ok(complete('up', '/et').includes('/etc'));
});

t.test('machines runs without a Hub', async (t) => {
  const home = temporaryHome(t);
  t.match(await cli(home, 'machines'), { code: 0, stdout: /agent-server/ });
  t.match(await cli(home, 'machines', 'hub'), { code: 0, stdout: /stateDiagram-v2/ });
});

/** A home whose Hub is a stand-in that knows one workspace. */
async function withStandIn(t: Test) {
  const home = temporaryHome(t);
  const record = recordOf('/w', {
    startedByHub: true,
    endpoints: { appServerWebSocket: 'ws://127.0.0.1:5/ws?token=secret-token' },
  });
  const notFound = {
    error: { code: 'workspaceNotFound', message: 'No workspace there.', details: { workspacePath: '/x' } },
  };
  const hub = await fakeHub((request, response, body) => {
    const url = request.url ?? '';
    if (url === '/v1/status') return sendJson(response, 200, statusOf(hub.baseUrl));
    if (url === '/v1/appservers') return sendJson(response, 200, [record]);
    if (url.startsWith('/v1/appservers/logs')) return void response.end('a line\n');
    // A Hub of an earlier version has neither a list of threads nor hosts.
    if (url.startsWith('/v1/threads') || url === '/v1/hosts') return sendJson(response, 404, notFound);
    if (url === '/v1/events') {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      const event = { kind: 'appserver.running', at: '2026-01-01T00:00:00Z', workspacePath: '/w', data: { pid: 5 } };
      return void response.write(`id: a-1\nevent: appserver.running\ndata: ${JSON.stringify(event)}\n\n`);
    }
    if (url.includes('%2Fx') || body.includes('"/x"')) return sendJson(response, 404, notFound);
    return sendJson(response, 200, record);
  });
  t.teardown(() => hub.close());
  writeLock(home, lockOf(hub.baseUrl));
  return { home, hub };
}

t.test('records are printed as text, or as JSON with --json', async (t) => {
  const { home, hub } = await withStandIn(t);
  t.match(await cli(home, 'list'), { code: 0, stdout: /^w\tready\t–\t–\t[^\t]+\t\d+\t–\t–\t–\t\n$/ });
  t.match(JSON.parse((await cli(home, 'list', '--json')).stdout), [{ state: 'running' }]);
  for (const command of ['ensure', 'stop', 'restart', 'inspect']) {
    const human = await cli(home, command, '/w');
    t.match(human, { code: 0, stdout: /\/w\n +state +ready/ }, command);
    t.notMatch(human.stdout + human.stderr, 'secret-token');
    t.match(JSON.parse((await cli(home, command, '/w', '--json')).stdout), { canonicalWorkspacePath: '/w' });
  }
  await cli(home, 'ensure', '../relative');
  t.match(
    hub.requests.at(-1)?.body,
    `"workspacePath":"${join(home, '..', 'relative')}"`,
    'relative paths are resolved here',
  );
  await cli(home, 'ensure', '--inspect-only');
  t.match(JSON.parse(hub.requests.at(-1)?.body ?? ''), { workspacePath: home, startIfMissing: false });
  t.match(await cli(home, 'logs', '/w'), { code: 0, stdout: 'a line\n' });
  t.match(await cli(home, 'hub', 'status'), { code: 0, stdout: /version +9.9.9/ });
});

t.test('a refusal of the Hub is printed with its exit code', async (t) => {
  const { home } = await withStandIn(t);
  const human = await cli(home, 'ensure', '/x');
  t.match(human, {
    code: 4,
    stdout: '',
    stderr: /No workspace there.\n +Correct the path, or make it a workspace: oratorio init \/x/,
  });
  const machine = await cli(home, 'stop', '/x', '--json');
  t.equal(machine.code, 4);
  t.match(JSON.parse(machine.stdout), { error: { code: 'workspaceNotFound', details: { workspacePath: '/x' } } });
});

t.test('the token is printed on request only', async (t) => {
  const { home, hub } = await withStandIn(t);
  t.match(await cli(home, 'inspect'), { code: 0, stdout: `${hub.baseUrl}/\n`, stderr: /--print-url/ });
  t.match(await cli(home, 'inspect', '--print-url'), { stdout: `${hub.baseUrl}/#token=secret-token-of-a-hub\n` });
});

t.test('up prints the record, then events until Ctrl-C, and leaves everything running', async (t) => {
  const { home, hub } = await withStandIn(t);
  await cli(home, 'init', 'site');
  const { child, ended } = start(home, ['up', 'site', '--follow']);
  let text = '';
  await new Promise<void>((resolve) => {
    child.stdout?.on('data', (piece: string) => {
      text += piece;
      if (text.includes('Following events')) resolve();
    });
    void ended.then(() => resolve());
  });
  child.kill('SIGINT');
  const { code, stdout, stderr } = await ended;
  t.equal(code, 0);
  t.match(
    stdout,
    new RegExp(`Hub found +${hub.baseUrl}[\\s\\S]*state +ready[\\s\\S]*statecharts[\\s\\S]*Left running. To stop`),
  );
  t.match(stderr, /The Hub is version 9.9.9/);
  t.notMatch(stdout, 'secret-token');
  t.notOk(hub.requests.some(({ line }) => line.includes('stop') || line.includes('shutdown')));
  t.match(JSON.parse((await cli(home, 'up', 'site', '--json')).stdout), { state: 'running' });
});

t.test('events prints JSON lines until Ctrl-C, and a closed pipe is not a failure', async (t) => {
  const { home } = await withStandIn(t);
  const { child, ended } = start(home, ['events', '--json', '--workspace', '/w']);
  child.stdout?.once('data', () => child.kill('SIGINT'));
  const { code, stdout } = await ended;
  t.equal(code, 0);
  t.match(JSON.parse(stdout), { id: 'a-1', kind: 'appserver.running', workspacePath: '/w' });
  const closed = start(home, ['completion', 'bash']);
  closed.child.stdout?.destroy();
  t.match(await closed.ended, { code: 0, stderr: '' });
});

t.test('chat repeats the ensure of an unreachable server until the Hub reports a failure', async (t) => {
  const home = temporaryHome(t);
  const failed = { code: 'appServerStartFailed', message: 'It does not start.', details: {} };
  let ensured = 0;
  const hub = await fakeHub((request, response) => {
    if (request.url === '/v1/status') return sendJson(response, 200, statusOf(hub.baseUrl));
    ensured += 1;
    return ensured < 3 ? sendJson(response, 200, recordOf('/w')) : sendJson(response, 500, { error: failed });
  });
  t.teardown(() => hub.close());
  writeLock(home, lockOf(hub.baseUrl));
  t.match(await cli(home, 'chat', 'hello', '--workspace', home), { code: 6, stderr: /It does not start/ });
  t.equal(ensured, 3);
});

t.test('a result that cannot be written fails with the reason', { skip: !existsSync('/dev/full') }, async (t) => {
  const full = openSync('/dev/full', 'w');
  t.teardown(() => closeSync(full));
  const { code, stderr } = await start(temporaryHome(t), ['completion', 'bash'], { stdio: ['ignore', full, 'pipe'] })
    .ended;
  t.equal(code, 1);
  t.match(stderr, /^✖ Standard output cannot be written: ENOSPC.*\n$/);
});

t.test('a Hub with closed output keeps serving', async (t) => {
  const home = temporaryHome(t);
  const { child, ended } = start(home, ['hub'], {
    env: { ...programEnvironment, HOME: home, ORATORIO_HOME: home },
  });
  child.stdout?.destroy();
  child.stderr?.destroy();
  const lockFile = join(home, 'hub', 'hub.lock');
  for (let ready = false; !ready; ready = existsSync(lockFile)) await new Promise((resolve) => setTimeout(resolve, 10));
  t.match(await cli(home, 'hub', 'status'), { code: 0 });
  t.match(await cli(home, 'hub', 'stop'), { code: 0 });
  t.equal((await ended).code, 0);
});
