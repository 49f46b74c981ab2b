import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { createExec, type ExecSettings } from '../../../src/agent/tools/exec/exec.ts';
import { sandboxStatus } from '../../../src/agent/tools/exec/sandbox.ts';
import { call, temporaryWorkspace } from './run-tool.ts';

/** Records its arguments, one per line, and runs the command without a sandbox. */
const recorder = (file: string, trialExitCode: number): string => `#!/bin/sh
if [ "$1" = --version ]; then echo 'bubblewrap 9.8.7'; exit 0; fi
case "$*" in *'exit 0') [ ${trialExitCode} = 0 ] || echo 'bwrap: No permissions to create a new namespace' >&2; exit ${trialExitCode};; esac
printf '%s\\n' "$@" > '${file}'
while [ "$1" != -- ]; do
  if [ "$1" = --chdir ]; then cd "$2"; fi
  shift
done
shift
exec "$@"
`;

/** A `PATH` on which the only bubblewrap is a stand-in; `calledWith` are the words of its last call. */
function fakeBubblewrap(t: Test, trialExitCode = 0) {
  const directory = temporaryWorkspace(t);
  const words = join(directory, 'words');
  writeFileSync(join(directory, 'bwrap'), recorder(words, trialExitCode));
  chmodSync(join(directory, 'bwrap'), 0o755);
  return {
    environment: { PATH: `${directory}:${process.env['PATH'] ?? ''}` },
    program: join(directory, 'bwrap'),
    calledWith: () => readFileSync(words, 'utf8').trimEnd().split('\n'),
    wasCalled: () => existsSync(words),
  };
}

function exec(overrides: Partial<ExecSettings>) {
  return createExec({
    timeoutMs: 60_000,
    maxTimeoutMs: 60_000,
    maxOutputChars: 10_000,
    sandbox: 'auto',
    network: 'deny',
    home: '/nonexistent',
    pathRules: { blockedPaths: [], protectedDirectories: [] },
    environment: process.env,
    passEnvironment: [],
    secrets: [],
    ...overrides,
  });
}

/** Where `part` begins in `words`; -1 when it is not there. */
const indexOfPart = (words: readonly string[], part: readonly string[]): number =>
  words.findIndex((_, at) => part.every((word, offset) => words[at + offset] === word));

t.test('off: bubblewrap is not searched for', async (t) => {
  const { environment, wasCalled } = fakeBubblewrap(t);
  t.strictSame(await sandboxStatus('off', environment), {
    mode: 'off',
    available: false,
    reason: 'Tools.Shell.Sandbox is off',
  });
  const workspacePath = temporaryWorkspace(t);
  t.equal((await call(exec({ sandbox: 'off', environment }), { command: 'echo x' }, { workspacePath })).text, 'x');
  t.equal(wasCalled(), false);
});

t.test('if bubblewrap is found and works, commands run in its sandbox', async (t) => {
  const { environment, program, calledWith } = fakeBubblewrap(t);
  t.strictSame(await sandboxStatus('auto', environment), {
    mode: 'auto',
    available: true,
    reason: `bubblewrap 9.8.7, ${program}`,
  });
  const workspacePath = temporaryWorkspace(t);
  for (const name of ['sub', '.oratorio', 'private']) mkdirSync(join(workspacePath, name));
  writeFileSync(join(workspacePath, 'key.pem'), '');
  const pathRules = { blockedPaths: ['private', 'key.pem', 'absent'], protectedDirectories: [] };
  const tool = exec({ environment, pathRules, sandbox: 'required' });
  const { text, exitCode } = await call(tool, { command: 'pwd; exit 5', workingDir: 'sub' }, { workspacePath });
  t.match(text, join(workspacePath, 'sub'));
  t.equal(exitCode, 5);

  const words = calledWith();
  const at = (...part: string[]): number => indexOfPart(words, part);
  const expected = [
    ['--ro-bind', '/', '/'],
    ['--proc', '/proc'],
    ['--dev', '/dev'],
    ['--tmpfs', '/tmp'],
    ['--unshare-pid'],
    ['--cap-drop', 'ALL'],
    ['--die-with-parent'],
    ['--bind', workspacePath, workspacePath],
    ['--chdir', join(workspacePath, 'sub'), '--'],
  ];
  for (const part of expected) t.ok(at(...part) >= 0, part.join(' '));
  t.ok(at('--unshare-net') >= 0);
  t.ok(at('--tmpfs', '/tmp') < at('--bind', workspacePath), 'a workspace under /tmp is let in after it was emptied');
  for (const hidden of ['.oratorio', 'private']) {
    t.ok(at('--tmpfs', join(workspacePath, hidden)) > at('--bind', workspacePath), `${hidden} is hidden`);
  }
  t.ok(at('--ro-bind', '/dev/null', join(workspacePath, 'key.pem')) > 0);
  t.ok(at('--perms', '0000', '--tmpfs', join(workspacePath, 'absent')) > 0, 'a missing one cannot be made');
  t.notOk(existsSync(join(workspacePath, 'absent')), 'and leaves nothing behind');
});

t.test('a hidden directory around the workspace is hidden before the workspace is let in', async (t) => {
  const { environment, calledWith } = fakeBubblewrap(t);
  const home = temporaryWorkspace(t);
  const workspacePath = join(home, 'workspace');
  mkdirSync(workspacePath);
  const pathRules = { blockedPaths: [], protectedDirectories: [home] };
  await call(exec({ environment, pathRules }), { command: 'true' }, { workspacePath });
  const words = calledWith();
  const hidden = indexOfPart(words, ['--tmpfs', home]);
  t.ok(hidden > 0 && hidden < indexOfPart(words, ['--bind', workspacePath]));
});

t.test('there, but of no use: auto goes without, required refuses, both know why', async (t) => {
  const { environment, wasCalled } = fakeBubblewrap(t, 1);
  const reason = 'bubblewrap cannot make a sandbox here: bwrap: No permissions to create a new namespace';
  t.strictSame(await sandboxStatus('auto', environment), { mode: 'auto', available: false, reason });
  t.strictSame(await sandboxStatus('required', environment), { mode: 'required', available: false, reason });
  const workspacePath = temporaryWorkspace(t);
  const context = { workspacePath };
  t.equal((await call(exec({ environment, sandbox: 'auto' }), { command: 'echo x' }, context)).text, 'x');
  const { text, isError } = await call(exec({ environment, sandbox: 'required' }), { command: 'touch proof' }, context);
  t.match(
    text,
    /^Error: Exec: the setting Tools\.Shell\.Sandbox is "required", and there is no sandbox: .*namespace\./,
  );
  t.equal(isError, true);
  t.equal(existsSync(join(workspacePath, 'proof')), false);
  t.equal(wasCalled(), false);
});

t.test('a program that is not bubblewrap is reported with its error', async (t) => {
  const directory = temporaryWorkspace(t);
  writeFileSync(join(directory, 'bwrap'), '#!/bin/sh\necho broken >&2\nexit 127\n');
  chmodSync(join(directory, 'bwrap'), 0o755);
  const { reason } = await sandboxStatus('auto', { PATH: directory });
  t.equal(reason, 'bwrap --version failed: broken');
});

t.test('the bubblewrap of this machine makes a sandbox, or the status names the reason', async (t) => {
  const { available, reason } = await sandboxStatus('required');
  if (!available) {
    t.match(reason, /not installed|cannot make a sandbox|needs Linux/);
    return;
  }
  const outside = temporaryWorkspace(t);
  const workspacePath = temporaryWorkspace(t);
  mkdirSync(join(workspacePath, '.oratorio'));
  writeFileSync(join(workspacePath, '.oratorio', 'token'), 'secret');
  writeFileSync(join(workspacePath, 'key.pem'), 'secret');
  const tool = exec({ sandbox: 'required', pathRules: { blockedPaths: ['key.pem'], protectedDirectories: [] } });
  const run = (command: string) => call(tool, { command }, { workspacePath });
  t.equal((await run('echo inside > file && cat file')).text, 'inside');
  t.equal(readFileSync(join(workspacePath, 'file'), 'utf8'), 'inside\n');
  t.equal((await run(`touch ${outside}/x`)).isError, true, 'nothing else in /tmp is there');
  t.equal((await run('touch /etc/oratorio-test')).isError, true, 'the rest is read-only');
  t.equal((await run('mount -o remount,rw / 2>/dev/null && touch /etc/oratorio-test')).isError, true);
  t.equal((await run('cat .oratorio/token key.pem')).text.includes('secret'), false);
  t.equal((await run(`kill -0 ${process.pid}`)).isError, true, 'our processes are not seen');
  const { text } = await run('setsid env -i sleep 1000 >/dev/null 2>&1 & echo away');
  t.match(text, /^away/);
});
