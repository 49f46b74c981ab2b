/** Sandboxes that stay, with the bubblewrap of this machine. Where it has none, only the ways without a sandbox can be seen. */
import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import t, { type Test } from 'tap';
import { BackgroundProcesses, OutputFiles, Sandboxes, ThreadDirectories } from '../../../src/agent/index.ts';
import { createExec, type ExecSettings } from '../../../src/agent/tools/exec/exec.ts';
import { markerVariable } from '../../../src/supervise/index.ts';
import { scanProcesses } from '../../../src/supervise/scan.ts';
import { killIfThere } from '../../hub/harness.ts';
import { until } from '../../supervise/helpers.ts';
import { call, onBug, temporaryWorkspace } from './run-tool.ts';

const environment = { ...process.env, [markerVariable]: `test-of-sandboxes-${process.pid}` };
const isAvailable = await (async () => {
  const sandboxes = new Sandboxes(environment);
  return sandboxes.areAvailable().finally(() => sandboxes.close());
})();

/** Processes in the sandboxes of this test. */
const ours = async () =>
  (await scanProcesses())
    .filter(
      ({ zombie, marker }) =>
        !zombie && typeof marker === 'object' && marker.value.startsWith(environment[markerVariable] ?? '-'),
    )
    .map(({ pid }) => pid);

function stage(t: Test, overrides: Partial<ExecSettings> = {}) {
  const workspacePath = temporaryWorkspace(t);
  const home = temporaryWorkspace(t);
  const outputs = new OutputFiles(join(home, 'outputs'));
  const sandboxes = new Sandboxes(environment);
  const processes = new BackgroundProcesses({ secrets: [], outputs, onBug });
  t.teardown(async () => {
    await processes.close();
    await sandboxes.close();
  });
  const tool = createExec({
    ...{ timeoutMs: 60_000, maxTimeoutMs: 60_000, maxOutputChars: 10_000, sandbox: 'required', network: 'deny' },
    ...{ home, pathRules: { blockedPaths: [], protectedDirectories: [home] }, passEnvironment: [], secrets: [] },
    ...{ environment, outputs, sandboxes, processes },
    ...overrides,
  });
  const run = (command: string, more: object = {}, threadId = 'thread_a') =>
    call(tool, { command, ...more }, { workspacePath, threadId });
  const git = (...words: string[]) =>
    execFileSync('git', ['-c', 'user.name=a', '-c', 'user.email=a@b', ...words], { cwd: workspacePath, stdio: 'pipe' });
  return { workspacePath, home, outputs, sandboxes, processes, tool, run, git };
}

t.test(
  'commands of a conversation share /tmp, processes and the loopback network; another conversation does not',
  async (t) => {
    if (!isAvailable) return;
    const { run, processes } = stage(t);
    await run('echo shared > /tmp/file');
    t.equal((await run('cat /tmp/file')).text, 'shared');
    t.match(await run('cat /tmp/file', {}, 'thread_b'), { isError: true });
    const script =
      'require("http").createServer((q, a) => a.end("hello")).listen(8123, "127.0.0.1", () => console.log("up"))';
    await run(`"${process.execPath}" -e '${script}'`, { background: true });
    const ask = `"${process.execPath}" -e 'fetch("http://127.0.0.1:8123").then((a) => a.text()).then(console.log)'`;
    await until('it answers', async () => (await run(ask)).text.startsWith('hello'));
    t.match(await run(ask, {}, 'thread_b'), { isError: true });
    t.match(processes.list('thread_a'), [{ state: 'running' }]);
  },
);

t.test('a shared sandbox has no privileges, no access to the host, and shows only its own processes', async (t) => {
  if (!isAvailable) return;
  const { run, workspacePath } = stage(t);
  const outside = temporaryWorkspace(t);
  t.match((await run('grep Cap /proc/self/status')).text, /CapEff:\s0{16}$/m);
  t.match((await run('grep NoNewPrivs /proc/self/status')).text, /NoNewPrivs:\s1/);
  t.equal((await run(`touch ${outside}/x`)).isError, true, 'nothing else in /tmp is there');
  for (const command of [
    'touch /etc/oratorio-test',
    'mount -o remount,rw /',
    'mount -t tmpfs none /etc',
    'unshare -Ur true && mount -o remount,rw /',
    `kill -0 ${process.pid}`,
    `nsenter -t 1 -m -p -- touch /etc/oratorio-test && test -e /etc/oratorio-test && touch ${outside}/x`,
  ]) {
    await run(command);
  }
  t.notOk(existsSync('/etc/oratorio-test'));
  t.notOk(existsSync(join(outside, 'x')));
  await run('echo inside > file');
  t.equal(readFileSync(join(workspacePath, 'file'), 'utf8'), 'inside\n');
  t.notMatch((await run('ls /proc')).text, new RegExp(`^${process.pid}$`, 'm'));
});

t.test('the sandbox hides state and keys of the user, and shows whole outputs', async (t) => {
  if (!isAvailable) return;
  const { run, workspacePath, home, outputs } = stage(t);
  mkdirSync(join(workspacePath, '.oratorio'));
  writeFileSync(join(workspacePath, '.oratorio', 'token'), 'secret');
  writeFileSync(join(home, 'config.json'), 'secret');
  t.notMatch((await run(`cat .oratorio/token ${home}/config.json`)).text, 'secret');
  t.match((await run(`ls ${home}`)).text, /Permission denied/);
  const { text } = await run('seq 1 20000');
  const [, file = ''] = /The whole output is in (\S+\.txt)/.exec(text) ?? [];
  t.ok(file.startsWith(outputs.directory));
  t.match(await run(`tail -n 1 ${file}`), { text: '20000', isError: false });
  t.match(await run(`echo x >> ${file}`), { isError: true });
});

t.test('a tool in a directory of PATH below /tmp runs, and nothing beside it is there', async (t) => {
  if (!isAvailable) return;
  const parent = mkdtempSync('/tmp/oratorio-tools-');
  t.teardown(() => rmSync(parent, { recursive: true, force: true }));
  mkdirSync(join(parent, 'bin'));
  writeFileSync(join(parent, 'bin', 'greet'), '#!/bin/sh\necho hello', { mode: 0o755 });
  writeFileSync(join(parent, 'beside'), 'not for the agent');
  const path = `${join(parent, 'bin')}:/tmp:${join(parent, 'missing')}:relative:${process.env['PATH'] ?? ''}`;
  const { run } = stage(t, { environment: { ...environment, PATH: path } });
  t.match(await run('greet'), { text: 'hello', isError: false });
  t.match(await run(`cat ${parent}/beside`), { isError: true });
  t.match(await run(`echo x > ${parent}/bin/greet`), { isError: true });
});

t.test('hooks and configuration of the repository are read-only, and commits work', async (t) => {
  if (!isAvailable) return;
  const { run, git, workspacePath } = stage(t);
  git('init', '--quiet');
  git('commit', '--quiet', '--allow-empty', '-m', 'first');
  mkdirSync(join(workspacePath, '.git', 'hooks'), { recursive: true });
  for (const command of [
    'echo "touch /tmp/x" > .git/hooks/post-commit',
    'git config core.fsmonitor ./evil',
    'mv .git/hooks .git/other',
    'rm -rf .git/config',
    'mv .git old && mkdir .git',
  ]) {
    t.equal((await run(command)).isError, true, command);
  }
  const commit =
    'echo x > a && git add a && git -c user.name=a -c user.email=a@b commit -qm second && git log --oneline | wc -l';
  t.equal((await run(commit)).text, '2');
});

t.test('commits work in a worktree, and only a worktree that its repository knows gets its repository', async (t) => {
  if (!isAvailable) return;
  const { git, workspacePath, tool } = stage(t);
  git('init', '--quiet');
  git('commit', '--quiet', '--allow-empty', '-m', 'first');
  const tree = join(temporaryWorkspace(t), 'tree');
  git('worktree', 'add', '--quiet', tree);
  const run = (command: string, at: string) =>
    call(tool, { command }, { workspacePath: at, threadId: `thread_${at.length}` });
  const commit =
    'echo x > a && git add a && git -c user.name=a -c user.email=a@b commit -qm second && git log --oneline | wc -l';
  t.equal((await run(commit, tree)).text, '2');
  t.equal((await run(`echo x > ${workspacePath}/.git/hooks/post-commit`, tree)).isError, true);
  await run(`echo x > ${workspacePath}/other`, tree);
  t.notOk(existsSync(join(workspacePath, 'other')));
  t.equal((await run('mv .git old', tree)).isError, true);
  const liar = temporaryWorkspace(t);
  writeFileSync(join(liar, '.git'), `gitdir: ${workspacePath}/.git/worktrees/tree\n`);
  t.equal((await run(`echo x > ${workspacePath}/.git/description`, liar)).isError, true, 'a .git file that lies');
  symlinkSync(join(workspacePath, '.git'), join(liar, 'link'));
  t.equal((await run('echo x > link/description', liar)).isError, true);
});

t.test('a failure that the sandbox may have caused says so, any other one does not', async (t) => {
  if (!isAvailable) return;
  const { run } = stage(t);
  t.match((await run('touch /usr/x')).text, /This may be the sandbox: only the workspace and \/tmp can be written/);
  const connect = `"${process.execPath}" -e 'require("net").connect(9, "192.0.2.1").on("error", (e) => { console.log(e.code); process.exit(1) })'`;
  t.match((await run(connect)).text, /This may be the sandbox: it reaches no network/);
  t.notMatch((await run('exit 3')).text, /sandbox/);
  t.notMatch((await run('cat missing')).text, /sandbox/);
});

t.test('a rule gives one command the network; an outside call runs without a sandbox', async (t) => {
  if (!isAvailable) return;
  const { tool, workspacePath } = stage(t);
  const outside = temporaryWorkspace(t);
  const interfaces = 'tail -n +3 /proc/net/dev | wc -l';
  const within = { workspacePath, threadId: 'thread_a' };
  const here = execFileSync('sh', ['-c', interfaces], { encoding: 'utf8' }).trim();
  t.equal((await call(tool, { command: interfaces }, within)).text, '1');
  t.equal((await call(tool, { command: interfaces }, { ...within, hasNetwork: true })).text, here);
  t.equal((await call(tool, { command: `touch ${outside}/x` }, { ...within, hasNetwork: true })).isError, true);
  t.equal((await call(tool, { command: `touch ${outside}/x`, outside: true }, within)).isError, false);
  t.ok(existsSync(join(outside, 'x')));
});

t.test('a call outside is asked about each time, with the reason', async (t) => {
  if (!isAvailable) return;
  const { tool, workspacePath } = stage(t);
  const parsed = tool.parse({ command: 'npm ci', outside: true, reason: 'It needs the registry.' });
  if (!parsed.ok) throw new Error(parsed.error);
  const first = await tool.approvalFor(parsed.args, { workspacePath });
  const second = await tool.approvalFor(parsed.args, { workspacePath });
  t.match(first, { operation: 'run', isAskedAlways: true, reason: /outside of the sandbox.*It needs the registry\.$/ });
  t.not(first?.scopeKey, second?.scopeKey);
});

t.test('without a sandbox a call outside is like any other', async (t) => {
  const { tool, workspacePath } = stage(t, { sandbox: 'off' });
  const parsed = tool.parse({ command: 'npm ci', outside: true });
  if (!parsed.ok) throw new Error(parsed.error);
  t.match(await tool.approvalFor(parsed.args, { workspacePath }), { operation: 'run', isAskedAlways: undefined });
});

t.test('a shared sandbox and all its processes end with its conversation', async (t) => {
  if (!isAvailable) return;
  const { run, sandboxes } = stage(t);
  await run('env -i setsid sleep 3500 > /dev/null 2>&1 & echo away');
  await run('true', {}, 'thread_b');
  t.ok((await ours()).length > 0);
  await sandboxes.end('thread_a');
  await sandboxes.end('thread_b');
  await until('they are gone', async () => (await ours()).length === 0);
});

t.test('a sandbox that was killed is made again', async (t) => {
  if (!isAvailable) return;
  const { run } = stage(t);
  await run('echo x > /tmp/file');
  for (const pid of await ours()) killIfThere(pid);
  await until('it is gone', async () => (await ours()).length === 0);
  t.equal((await run('echo again; ls /tmp')).text.split('\n')[0], 'again');
});

t.test('changed mounts create a new sandbox, and running commands keep their sandbox', async (t) => {
  if (!isAvailable) return;
  const { run, home, processes } = stage(t);
  await run('echo x > /tmp/file; sleep 0.1');
  const { text } = await run('sleep 3501', { background: true });
  mkdirSync(join(home, 'hub'));
  const other = temporaryWorkspace(t);
  mkdirSync(join(other, '.oratorio'));
  writeFileSync(
    join(home, 'hub', 'appservers.json'),
    JSON.stringify({ appServers: [{ canonicalWorkspacePath: other }] }),
  );
  t.equal((await run('cat /tmp/file')).text, 'x', 'a background process keeps the sandbox open');
  await processes.stop('thread_a', /proc_\w+/.exec(text)?.[0] ?? '');
  await until('no process is in the old sandbox', async () => (await run('cat /tmp/file')).isError || sleep(5));
});

t.test('endIdle ends an idle sandbox, one with a process stays; /tmp is there again', async (t) => {
  if (!isAvailable) return;
  const temporary = new ThreadDirectories(temporaryWorkspace(t));
  const { run, sandboxes, processes } = stage(t, { temporary });
  const { text } = await run('echo x > /tmp/file; sleep 3502', { background: true });
  await sandboxes.endIdle('thread_a');
  t.not((await ours()).length, 0);
  await processes.stop('thread_a', /proc_\w+/.exec(text)?.[0] ?? '');
  await until('it is left and ends', async () => {
    await sandboxes.endIdle('thread_a');
    return (await ours()).length === 0;
  });
  t.equal((await run('cat /tmp/file')).text, 'x');
  t.match(await run('cat /tmp/file', {}, 'thread_b'), { isError: true });
  temporary.forget('thread_a');
  t.notOk(existsSync(join(temporary.directory, 'thread_a')));
});

t.test('if processes cannot enter a shared sandbox, each command has its own sandbox', async (t) => {
  if (!isAvailable) return;
  const programs = temporaryWorkspace(t);
  writeFileSync(join(programs, 'nsenter'), '#!/bin/sh\nexit 1\n', { mode: 0o755 });
  const poor = { ...environment, PATH: `${programs}:${process.env['PATH']}` };
  const sandboxes = new Sandboxes(poor);
  t.equal(await sandboxes.areAvailable(), false);
  const { run } = stage(t, { environment: poor, sandboxes });
  t.equal((await run('echo x > /tmp/file && cat /tmp/file')).text, 'x');
  t.equal((await run('cat /tmp/file')).isError, true);
});

for (const [place, own] of [
  ['shared sandbox', {}],
  ['sandbox of one command', { sandboxes: undefined }],
] as const) {
  t.test(
    `regression: H52 set-id bits that a command in a ${place} gives to a file are cleared, and the file is named`,
    async (t) => {
      if (!isAvailable || process.platform !== 'linux') return;
      const { run, workspacePath } = stage(t, own);
      const mode = (name: string) => statSync(join(workspacePath, name)).mode & 0o7777;
      writeFileSync(join(workspacePath, 'of the user'), '', { mode: 0o755 });
      writeFileSync(join(workspacePath, 'plain'), '');
      chmodSync(join(workspacePath, 'of the user'), 0o4755);
      await sleep(50);
      const { text } = await run(
        'cp /bin/sh s; chmod 4755 s; mkdir -p a/b; cp s a/b/group; chmod 2711 a/b/group; chmod 4111 plain; ln -s s link',
      );
      t.match(text, /Set-id bits cleared.*other users/);
      for (const name of ['s', 'a/b/group', 'plain']) t.match(text, join(workspacePath, name));
      t.same(['s', 'a/b/group', 'plain', 'of the user'].map(mode), [0o755, 0o711, 0o111, 0o4755]);
      t.equal((await run('./s -c "echo still runs"')).text, 'still runs');
      t.match(
        (await run('chmod 4755 a/b/group')).text,
        join(workspacePath, 'a/b/group'),
        'in a directory that is unchanged',
      );
      t.equal(mode('a/b/group'), 0o755);
    },
  );
}

t.test('changes by a process that outlives its command are checked when the sandbox ends', async (t) => {
  if (!isAvailable || process.platform !== 'linux') return;
  const { run, sandboxes, workspacePath, git } = stage(t);
  git('init', '-q');
  const at = (name: string) => join(workspacePath, name);
  const late =
    'until [ -e go ]; do sleep 0.01; done; git init -q made; echo > made/.git/hooks/pre-commit; cp /bin/sh s; chmod 4755 s';
  await run(`setsid env -i sh -c '${late}; touch done; sleep 100' > /dev/null 2>&1 < /dev/null & sleep 0.2`);
  writeFileSync(at('go'), '');
  await until('it has written', async () => existsSync(at('done')));
  t.ok(existsSync(at('made/.git/hooks/pre-commit')), 'no command has ended since');
  await sandboxes.end('thread_a');
  t.notOk(existsSync(at('made/.git/hooks/pre-commit')));
  t.equal(statSync(at('s')).mode & 0o7777, 0o755);
});
