/** Processes that leave the group of their ancestor and clear their environment are found and ended; no other process is touched. */
import { spawn } from 'node:child_process';
import t from 'tap';
import { commandLine, PipedProcess } from '../../src/supervise/index.ts';
import { listPids, readEntry } from '../../src/supervise/procfs.ts';

const word = `1234.${process.pid}`;

/** Processes that sleep for the time of this test, besides zombies. */
const sleepers = (): readonly number[] =>
  listPids().filter((pid) => {
    const entry = readEntry(pid);
    return typeof entry !== 'string' && !entry.zombie && commandLine(pid) === `sleep ${word}`;
  });

async function untilCount(count: number): Promise<void> {
  while (sleepers().length !== count) await new Promise((resolve) => setTimeout(resolve, 20));
}

const start = (script: string): Promise<PipedProcess> =>
  PipedProcess.start({
    command: 'sh',
    args: ['-c', `${script}\ncat`],
    cwd: '/',
    env: { PATH: process.env['PATH'] ?? '' },
    parentMarker: undefined,
    stderrBytes: 100,
    sweepGraceMs: 100,
  });

t.test('what an agent leaves is ended with it', async (t) => {
  const another = spawn('sleep', [word], { detached: true, stdio: 'ignore' });
  t.teardown(() => another.kill('SIGKILL'));
  await untilCount(1);

  t.test('a member of its session with another group and no environment', async (t) => {
    // A shell with job control gives each command a group of its own.
    const one = await start(`env -i bash -c 'set -m; sleep ${word} & exec sleep ${word}' &`);
    await untilCount(3);
    one.kill();
    await one.gone;
    t.same(sleepers(), [another.pid]);
  });

  t.test('a descendant in a session of its own, once it was seen', async (t) => {
    const two = await start(`setsid env -i sh -c 'sleep ${word} & exec sleep ${word}' &`);
    await untilCount(3);
    const seen = await two.descendants?.look();
    t.ok((seen?.length ?? 0) >= 2, 'both were seen');
    two.kill();
    await two.gone;
    t.same(sleepers(), [another.pid]);
  });
});
