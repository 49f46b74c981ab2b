/** Places outside of git directories that a sandboxed command sees, reaches and makes. */
import { spawn, spawnSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import t, { type Test } from 'tap';
import { Sandboxes } from '../../../src/agent/index.ts';
import { createExec, type ExecSettings } from '../../../src/agent/tools/exec/exec.ts';
import { boundSockets } from '../../../src/agent/tools/exec/open-sockets.ts';
import { agentNames, homeNames, secretNames } from '../../../src/agent/tools/exec/sandbox-rule.ts';
import { call } from './run-tool.ts';

const isAvailable = await (async () => {
  const sandboxes = new Sandboxes(process.env);
  return sandboxes.areAvailable().finally(() => sandboxes.close());
})();
const skip = !isAvailable;

/** Directory outside of `/tmp`, which the sandbox replaces. */
function outsideOfTmp(t: Test): string {
  const directory = realpathSync(mkdtempSync('/var/tmp/oratorio-places-'));
  t.teardown(() => rmSync(directory, { recursive: true, force: true }));
  return directory;
}

function put(path: string, text = 'secret\n'): void {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
}

function stage(t: Test, overrides: Partial<ExecSettings> = {}, isShared = true) {
  const root = outsideOfTmp(t);
  const home = join(root, 'home');
  const workspacePath = join(home, 'work', 'site');
  mkdirSync(workspacePath, { recursive: true });
  const environment = { PATH: process.env['PATH'] ?? '', HOME: home };
  const sandboxes = isShared ? new Sandboxes(environment) : undefined;
  t.teardown(() => sandboxes?.close());
  const problems: (string | undefined)[] = [];
  const tool = createExec({
    ...{ timeoutMs: 60_000, maxTimeoutMs: 60_000, maxOutputChars: 50_000, sandbox: 'required', network: 'deny' },
    ...{
      home: join(home, '.oratorio'),
      pathRules: { blockedPaths: [], protectedDirectories: [join(home, '.oratorio')] },
    },
    ...{ environment, passEnvironment: [], secrets: [], sandboxes, onSandbox: (problem) => problems.push(problem) },
    ...overrides,
  });
  const run = (command: string, more: object = {}) =>
    call(
      tool,
      { command, ...more },
      { workspacePath, threadId: 'thread_a', hasNetwork: overrides.network === 'allow' },
    );
  return { root, home, workspacePath, run, problems };
}

const homePlacesFile = new URL('../../../src/agent/tools/exec/home-places.ts', import.meta.url);
const otherUser = { uid: 54_321, gid: 54_321, cwd: '/', env: {}, encoding: 'utf8' } as const;
const canBeOther =
  process.getuid?.() === 0 && spawnSync('/usr/bin/test', ['-r', fileURLToPath(homePlacesFile)], otherUser).status === 0;
t.test('a user without an account and without HOME has no home to hide', { skip: !canBeOther }, async (t) => {
  const script = `import { homesOf } from '${homePlacesFile.href}'; console.log(JSON.stringify(homesOf({})))`;
  const args = ['--disable-warning=ExperimentalWarning', '--input-type=module', '-e', script];
  t.match(spawnSync(process.execPath, args, otherUser), { status: 0, stdout: '[]\n' });
});

t.test('regression: H42 secrets at unlisted places of the home are hidden', { skip }, async (t) => {
  const { home, run } = stage(t);
  const unlisted = [
    '.vault-token',
    '.config/some-new-client/token',
    'Documents/letter',
    '.new-agent/auth.json',
    'id_rsa',
  ];
  const planted = [...secretNames, ...agentNames, ...unlisted].map((name) => join(home, name));
  const made = planted.filter((path) => !planted.some((other) => other !== path && other.startsWith(`${path}/`)));
  for (const path of made) put(path);
  const { text } = await run(
    `cat ${made.map((path) => `'${path}'`).join(' ')} 2>/dev/null; grep -rl secret ${home} 2>/dev/null; echo end`,
  );
  t.equal(text.split('\n')[0], 'end');
  t.match((await run(`ls -A ${home}`)).text, /work/);
  t.equal((await run(`touch ${home}/new`)).isError, true, 'the home is read-only');
});

t.test('tool chains of the home work, the workspace below it is there', { skip }, async (t) => {
  const { home, run } = stage(t);
  for (const name of homeNames) put(join(home, name, 'file'), 'tool\n');
  put(join(home, '.m2/settings.xml'));
  put(join(home, '.cargo/credentials.toml'));
  const { text } = await run(
    `cd ${home} && cat ${homeNames.map((name) => `${name}/file`).join(' ')} | wc -l; pwd; echo x > work/site/file`,
  );
  t.match(text, new RegExp(`^${homeNames.length}\n`));
  t.match(await run(`cat ${home}/.m2/settings.xml ${home}/.cargo/credentials.toml`), { isError: true });
});

t.test('a program beside its library in an unlisted directory of PATH runs', { skip }, async (t) => {
  const { home, run } = stage(t);
  put(join(home, 'sdks/tool/lib/words'), 'hello\n');
  put(join(home, 'sdks/secret'));
  put(join(home, 'sdks/tool/bin/greet'), '#!/bin/sh\ncat "$(dirname "$0")/../lib/words"\n');
  const { run: again } = stage(t, {
    environment: { HOME: home, PATH: `${join(home, 'sdks/tool/bin')}:${process.env['PATH']}` },
    sandboxes: undefined,
  });
  t.match(await run(`sh ${home}/sdks/tool/bin/greet`), { isError: true });
  t.match(await again(`sh ${home}/sdks/tool/bin/greet`), { text: 'hello', isError: false });
  t.match(await again(`cat ${home}/sdks/secret`), { isError: true });
});

t.test('VisibleHome opens places, but no credentials of agents', { skip }, async (t) => {
  const visibleHome = ['~/notes', '.npmrc', '.codex', '.config'];
  const { home, run } = stage(t, { visibleHome });
  for (const name of ['notes/a', '.npmrc', '.codex/auth.json', '.config/tool/settings', '.config/goose/config.yaml'])
    put(join(home, name), `${name}\n`);
  t.match(
    (await run(`cat ${home}/notes/a ${home}/.npmrc ${home}/.config/tool/settings`)).text,
    /notes\/a\n.npmrc\n.config/,
  );
  t.match(await run(`cat ${home}/.codex/auth.json`), { isError: true });
  t.match(await run(`cat ${home}/.config/goose/config.yaml`), { isError: true });
});

t.test('links among the hidden places: every command runs, their targets are hidden', { skip }, async (t) => {
  for (const isShared of [true, false]) {
    const { root, home, workspacePath, run, problems } = stage(
      t,
      { pathRules: { blockedPaths: ['private', 'key'], protectedDirectories: [] } },
      isShared,
    );
    put(join(root, 'elsewhere/ssh/id'));
    put(join(root, 'elsewhere/npmrc'));
    put(join(root, 'elsewhere/private/file'));
    put(join(root, 'elsewhere/cargo/bin/tool'), 'tool\n');
    symlinkSync(join(root, 'elsewhere/ssh'), join(home, '.ssh'));
    symlinkSync(join(root, 'elsewhere/npmrc'), join(home, '.npmrc'));
    symlinkSync(join(root, 'elsewhere/cargo'), join(home, '.cargo'));
    symlinkSync(join(root, 'missing'), join(home, '.aws'));
    symlinkSync('.gnupg', join(home, '.gnupg'));
    symlinkSync(join(root, 'elsewhere/private'), join(workspacePath, 'private'));
    symlinkSync(join(root, 'elsewhere/npmrc'), join(workspacePath, 'key'));
    const { text, isError } = await run(
      `cat ${root}/elsewhere/ssh/id ${root}/elsewhere/npmrc ${root}/elsewhere/private/file private/file key 2>/dev/null; cat ${home}/.cargo/bin/tool && echo ok`,
    );
    t.equal(text, 'tool\nok');
    t.equal(isError, false);
    t.strictSame(new Set(problems), new Set([undefined]));
  }
});

t.test('a sandbox that cannot be made is named as the reason, with auto and with required', { skip }, async (t) => {
  for (const sandbox of ['auto', 'required'] as const) {
    const programs = outsideOfTmp(t);
    // Works in its trial, and fails with the places of a workspace.
    writeFileSync(
      join(programs, 'bwrap'),
      '#!/bin/sh\ncase "$*" in *site*) echo "bwrap: Can\'t mount tmpfs on /newroot/x: No such file" >&2; exit 1;; esac\nexec /usr/bin/bwrap "$@"\n',
      { mode: 0o755 },
    );
    const { run, problems, workspacePath } = stage(t, {
      ...{
        sandbox,
        environment: { PATH: `${programs}:${process.env['PATH']}`, HOME: '/nonexistent' },
        sandboxes: undefined,
      },
    });
    const { text, isError, exitCode } = await run('touch proof');
    t.match(text, /there is no sandbox|The sandbox failed, not the command/);
    t.match(text, /Can't mount tmpfs/);
    t.equal(isError, true);
    t.equal(exitCode, undefined, 'no exit code of the command');
    t.match(problems, [/Can't mount tmpfs/]);
    t.notOk(existsSync(join(workspacePath, 'proof')));
  }
});

t.test('words of the sandbox are not the output of a failed command', { skip }, async (t) => {
  const programs = outsideOfTmp(t);
  // Works in each trial, and fails when a command follows.
  writeFileSync(
    join(programs, 'bwrap'),
    '#!/bin/sh\ncase "$*" in *--chdir*) echo "bwrap: Can\'t find source path" >&2; exit 1;; esac\nexec /usr/bin/bwrap "$@"\n',
    { mode: 0o755 },
  );
  const { run, problems } = stage(t, {
    ...{ environment: { PATH: `${programs}:${process.env['PATH']}`, HOME: '/nonexistent' }, sandboxes: undefined },
  });
  const { text, exitCode } = await run('exit 3');
  t.match(text, /^Error: Exec: the command did not run: bwrap: Can't find source path. The sandbox failed/);
  t.equal(exitCode, undefined);
  t.match(problems.at(-1), /Can't find source path/);
  const { run: other } = stage(t);
  t.match(await other('echo "bwrap: no" >&2; exit 3'), { exitCode: 3 }, 'the control: a command that says the same');
});

t.test('a missing blocked path can neither be made nor read, and leaves nothing behind', { skip }, async (t) => {
  for (const isShared of [true, false]) {
    const blockedPaths = ['nothere', 'deep/er/key', 'dangling'];
    const { workspacePath, run } = stage(t, { pathRules: { blockedPaths, protectedDirectories: [] } }, isShared);
    symlinkSync('target', join(workspacePath, 'dangling'));
    for (const path of [...blockedPaths, 'target']) {
      for (const command of [
        `echo s > ${path}; cat ${path}`,
        `mkdir -p ${path}; echo s > ${path}/x; cat ${path}/x`,
        `ln -s /etc/hostname ${path}x; mv ${path}x ${path}; cat ${path}`,
      ]) {
        const { text, isError } = await run(command);
        t.notMatch(text, /^s$/m, command);
        t.equal(isError, true, command);
      }
    }
    t.equal(
      (await run('mv deep deeper; mkdir -p deep/er; echo s > deep/er/key; cat deep/er/key')).text.includes('\ns\n'),
      false,
    );
    t.equal((await run('echo s > deep/neighbour; cat deep/neighbour')).text, 's', 'a neighbour is not blocked');
    t.notOk(existsSync(join(workspacePath, 'nothere', 'x')));
  }
});

t.test('placeholders are gone when the sandbox is closed', { skip }, async (t) => {
  const { workspacePath, run } = stage(
    t,
    { pathRules: { blockedPaths: ['nothere', 'a/b'], protectedDirectories: [] } },
    false,
  );
  await run('true');
  t.strictSame(readdirSync(workspacePath), []);
});

/** Runs a program that listens on a path until the end of the test. */
async function listen(t: Test, path: string): Promise<void> {
  const server = createServer((socket) => socket.end('reached\n'));
  await new Promise<void>((resolve) => server.listen(path, resolve));
  t.teardown(() => new Promise((resolve) => server.close(resolve)));
}

const connect = (path: string) =>
  `"${process.execPath}" -e 'require("net").connect(process.argv[1]).on("data", (d) => process.stdout.write(d)).on("error", (e) => console.log(e.code))' "${path}"`;

t.test(
  'regression: H42 sockets of other programs are out of reach while the network is denied, wherever they lie',
  { skip },
  async (t) => {
    const { root, home, workspacePath, run } = stage(t);
    const places = [join(root, 'service.sock'), join(home, 'home.sock'), join(workspacePath, 'in the workspace.sock')];
    const own = ['/run', '/srv', '/opt'].filter((path) => existsSync(path) && process.getuid?.() === 0);
    places.push(...own.map((path) => join(path, `oratorio-test-${process.pid}.sock`)));
    for (const path of places) await listen(t, path);
    t.ok(
      places.every((path) => boundSockets().includes(path)),
      'the kernel lists them',
    );
    for (const path of places) t.notMatch((await run(connect(path))).text, /reached/, path);
    const late = join(root, 'late.sock');
    await listen(t, late);
    t.notMatch((await run(connect(late))).text, /reached/, 'one that appears between two commands');
    await listen(t, `\0oratorio-test-${process.pid}`);
    t.notMatch((await run(connect(`\\0oratorio-test-${process.pid}`))).text, /reached/, 'an abstract one');
    const { run: open } = stage(t, { network: 'allow' });
    t.match((await open(connect(places[0] ?? ''))).text, /reached/, 'the control: with the network it is reached');
  },
);

t.test(
  'programs in the sandbox reach the sockets of each other, and the system directory of services is empty',
  { skip },
  async (t) => {
    const { run } = stage(t);
    const script = `const s = require("net").createServer((c) => c.end("own")).listen(process.argv[1], () => require("net").connect(process.argv[1]).on("data", (d) => { console.log(String(d)); s.close(); }))`;
    for (const path of ['/tmp/own.sock', 'own.sock'])
      t.match(await run(`"${process.execPath}" -e '${script}' ${path}`), { text: 'own', isError: false }, path);
    t.equal((await run('ls -A /run/user /run/dbus /run/screen 2>/dev/null | head -1')).text, '(no output)');
  },
);

t.test('a socket with a name of a working directory is found', { skip: process.platform !== 'linux' }, async (t) => {
  const directory = outsideOfTmp(t);
  const child = spawn(
    process.execPath,
    ['-e', 'require("net").createServer().listen("plain.sock", () => console.log("up"))'],
    {
      cwd: directory,
      stdio: ['ignore', 'pipe', 'ignore'],
    },
  );
  t.teardown(() => child.kill('SIGKILL'));
  await new Promise((resolve) => child.stdout.once('data', resolve));
  t.ok(boundSockets().includes(join(directory, 'plain.sock')));
});
