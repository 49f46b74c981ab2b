/** Shell that keeps a sandbox open, with a shell and its child in the place of bubblewrap and the first process of the sandbox. */
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { sandboxScript } from '../../../src/agent/tools/exec/sandbox-script.ts';
import { until } from '../../supervise/helpers.ts';
import { temporaryWorkspace } from './run-tool.ts';

const listOf = (pid: number) => `/proc/${pid}/task/${pid}/children`;
const options = { skip: !existsSync(listOf(process.pid)) && 'this kernel does not list children' };

const childrenOf = (pid: number): readonly number[] =>
  readFileSync(listOf(pid), 'utf8').split(' ').filter(Boolean).map(Number);
const sleeps = (pid: number): boolean => /^State:\s+S/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));

/** Starts the shell, and waits until it starts no more programs. */
async function openSandbox(t: Test) {
  const directory = temporaryWorkspace(t);
  const at = (name: string) => join(directory, name);
  const [end, pauses] = [at('end'), at('pauses')];
  const sleep = execFileSync('sh', ['-c', 'command -v sleep'], { encoding: 'utf8' }).trim();
  writeFileSync(pauses, '');
  writeFileSync(at('sleep'), `#!/bin/sh\necho >>${pauses}\nexec ${sleep} "$@"\n`, { mode: 0o755 });
  const sandbox = ['/bin/sh', '-c', `${sleep} 3200 & wait`];
  const child = spawn('/bin/sh', ['-c', sandboxScript, 'sandbox', at('line'), end, ...sandbox], {
    env: { PATH: `${directory}:${process.env['PATH']}` },
    stdio: ['pipe', 'ignore', 'ignore'],
    detached: true,
  });
  const pid = child.pid ?? 0;
  const hasEnded = once(child, 'exit');
  t.teardown(() => child.exitCode === null && process.kill(-pid, 'SIGKILL'));
  // A pause between the two counts of children would be in the file.
  const isWaiting = () => {
    const before = readFileSync(pauses, 'utf8');
    const isIdle = childrenOf(pid).length === 2 && sleeps(pid) && childrenOf(pid).length === 2;
    return isIdle && readFileSync(pauses, 'utf8') === before;
  };
  await until('the shell waits for the sandbox and its watch', isWaiting);
  const [holder = 0] = childrenOf(pid);
  const [first = 0] = childrenOf(holder);
  return { child, first, end, hasEnded };
}

t.test('regression: the shell of an open sandbox waits without starting programs', options, async (t) => {
  const { first, end, hasEnded } = await openSandbox(t);
  t.notOk(existsSync(end));
  process.kill(first, 'SIGKILL');
  await hasEnded;
  t.ok(existsSync(end), 'it reports the end');
});

t.test('a sandbox without a server and keepers is ended by the death of its first process', options, async (t) => {
  const { child, end, hasEnded } = await openSandbox(t);
  child.stdin.end();
  await hasEnded;
  t.ok(existsSync(end), 'it reports the end');
});
