/** `oratorio service` with stand-ins of systemctl and launchctl, which record their requests. */
import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { Writable } from 'node:stream';
import t, { type Test } from 'tap';
import { runCommandLine } from '../../src/cli/run.ts';
import { propertyList, serviceManager, unitText } from '../../src/cli/service/index.ts';
import { programEnvironment } from '../programs.ts';

class Collected extends Writable {
  text = '';
  override _write(chunk: Buffer, _: BufferEncoding, done: () => void): void {
    this.text += String(chunk);
    done();
  }
}

function place(t: Test) {
  const home = realpathSync(mkdtempSync(join(tmpdir(), 'oratorio-service-')));
  t.teardown(() => rmSync(home, { recursive: true, force: true }));
  const bin = join(home, 'bin');
  mkdirSync(bin);
  const calls = join(home, 'calls');
  /** @param script runs after the words are written down */
  const program = (name: string, script: string) => {
    writeFileSync(join(bin, name), `#!/bin/sh\necho "${name} $*" >> '${calls}'\n${script}\n`);
    chmodSync(join(bin, name), 0o755);
  };
  const env = { ...programEnvironment, HOME: home, ORATORIO_HOME: join(home, 'o'), PATH: `${bin}:/usr/bin:/bin` };
  return {
    home,
    env,
    program,
    calls: () => (existsSync(calls) ? readFileSync(calls, 'utf8').trim().split('\n') : []),
    manager: (platform: NodeJS.Platform) =>
      serviceManager({ userHome: home, env, signal: new AbortController().signal }, platform),
  };
}

const program = { command: ['/opt/a b/node', '/x/main.js', 'hub'], env: { ORATORIO_HOME: '/h/50%', PATH: '/a:/b' } };

t.test('systemd gets a user unit that is enabled, started and removed again', async (t) => {
  const { home, calls, manager, program: fake } = place(t);
  fake('systemctl', 'case "$*" in *is-enabled*) echo enabled;; *is-active*) echo active;; esac');
  const status = await manager('linux').install(program);
  const file = join(home, '.config/systemd/user/oratorio-hub.service');
  t.strictSame(status, { manager: 'systemd', file, isInstalled: true, isActive: true });
  t.equal(readFileSync(file, 'utf8'), unitText(program));
  t.match(
    readFileSync(file, 'utf8'),
    '\nExecStart="/opt/a b/node" "/x/main.js" "hub"\nEnvironment="ORATORIO_HOME=/h/50%%"\n',
  );
  t.equal(await manager('linux').remove(), true);
  t.notOk(existsSync(file));
  t.equal(await manager('linux').remove(), false);
  t.strictSame(
    calls().filter((call) => !/ is-/.test(call)),
    [
      'systemctl --user show-environment',
      'systemctl --user daemon-reload',
      'systemctl --user enable --now oratorio-hub.service',
      'systemctl --user disable oratorio-hub.service',
      'systemctl --user daemon-reload',
    ],
  );
  t.throws(() => unitText({ ...program, command: ['/a\nExecStartPre=/evil'] }), { message: /line break/ });
});

/** Path of a program that may be missing. */
const found = (name: string): string | undefined =>
  (process.env['PATH'] ?? '')
    .split(delimiter)
    .map((directory) => join(directory, name))
    .find((file) => existsSync(file));

t.test("systemd's own check accepts the unit", { skip: !found('systemd-analyze') && 'no systemd-analyze' }, (t) => {
  const { home } = place(t);
  const file = join(home, 'oratorio-hub.service');
  writeFileSync(file, unitText({ ...program, command: [process.execPath, '/x y/$main%.js', 'hub'] }));
  const options = { env: { ...programEnvironment, HOME: home, XDG_RUNTIME_DIR: home }, encoding: 'utf8' } as const;
  const verify = ['--user', '--recursive-errors=no', 'verify', file];
  const { status, stderr } = spawnSync(found('systemd-analyze') ?? '', verify, options);
  t.strictSame([status, stderr], [0, '']);
  t.end();
});

t.test('the property list is well-formed with any path, and refuses characters that XML cannot hold', (t) => {
  const text = propertyList({ command: ['/a&b', '<hub>', ']]>'], env: { PATH: '"/x":\'/y\'' } });
  const open: string[] = [];
  for (const [, close = '', name = '', empty = ''] of text.matchAll(/<(\/?)(\w+)[^<>]*?(\/?)>/g)) {
    if (close) t.equal(open.pop(), name);
    else if (!empty) open.push(name);
  }
  t.strictSame(open, []);
  t.notMatch(text.replace(/&(?:amp|lt|gt);/g, ''), '&');
  t.throws(() => propertyList({ command: ['/a\u0007'], env: {} }), { message: /control character/ });
  if (found('plutil')) {
    const { home } = place(t);
    writeFileSync(join(home, 'hub.plist'), text);
    t.equal(spawnSync('plutil', ['-lint', join(home, 'hub.plist')]).status, 0);
  }
  t.end();
});

t.test('launchd gets a property list that is loaded and removed again', async (t) => {
  const { home, calls, manager, program: fake } = place(t);
  fake('launchctl', 'case "$1" in print) echo "state = running";; esac');
  const status = await manager('darwin').install({ ...program, command: ['/a&b', '<hub>'] });
  const file = join(home, 'Library/LaunchAgents/dev.oratorio.hub.plist');
  t.strictSame(status, { manager: 'launchd', file, isInstalled: true, isActive: true });
  t.match(readFileSync(file, 'utf8'), '<string>/a&amp;b</string>\n    <string>&lt;hub&gt;</string>');
  t.match(propertyList(program), '<key>ORATORIO_HOME</key>\n    <string>/h/50%</string>');
  t.equal(await manager('darwin').remove(), true);
  t.notOk(existsSync(file));
  t.match(calls(), [/bootout gui/, /bootstrap gui\/\d+ .*plist$/, /print/, /bootout/]);
});

t.test('without a manager of the session the command fails with what to do, and writes nothing', async (t) => {
  const { home, env, manager, program: fake } = place(t);
  fake('systemctl', 'echo "Failed to connect to bus: No medium found" >&2; exit 1');
  await t.rejects(manager('linux').install(program), {
    exit: 'precondition',
    message: /show-environment failed: Failed to connect to bus/,
    hint: /oratorio up starts the Hub[\s\S]*oratorio hub/,
  });
  t.notOk(existsSync(join(home, '.config')));
  t.throws(() => manager('win32'), { exit: 'precondition', message: /win32 has no service manager/ });
  const run = async (...argv: string[]) => {
    const [stdout, stderr] = [new Collected(), new Collected()];
    const interruption = () => ({ signal: new AbortController().signal, exit: () => 'interrupted' as const });
    const code = await runCommandLine(argv, { stdout, stderr, env, cwd: home, interruption });
    return { code, stdout: stdout.text, stderr: stderr.text };
  };
  if (process.platform !== 'linux') return;
  t.match(await run('service', 'install'), { code: 7, stderr: /[^.]\. The Hub cannot be started at log-in here/ });
  fake('systemctl', 'case "$*" in *is-enabled*) echo enabled;; *is-active*) echo inactive;; esac');
  t.match(await run('service', 'install'), {
    code: 0,
    stdout: /✔ The Hub starts at log-in\n[\s\S]*at log-in +yes[\s\S]*not running/,
  });
  t.match(JSON.parse((await run('service', 'status', '--json')).stdout), { isInstalled: true, isActive: false });
  t.match(await run('service', 'remove'), { code: 0, stdout: /no longer starts at log-in/ });
  t.match(await run('service', 'remove'), { code: 0, stdout: /nothing was removed/ });
});
