import { closeSync, openSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { type ProgramRun, RunningProgram, runProgram } from '../../src/supervise/index.ts';
import { temporaryDirectory, until } from './helpers.ts';

const env = { PATH: process.env['PATH'] };

/** A script of the shell as a program. */
const shell = (script: string, more: Partial<ProgramRun> = {}): ProgramRun => ({
  program: 'sh',
  args: ['-c', script],
  env,
  ...more,
});

const isAlive = (pid: number): boolean => {
  try {
    // A zombie has ended: in a container it may stay uncollected.
    return !/^State:\tZ/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
  } catch {
    return false;
  }
};

/** Reads process ids that a script writes to a file, one in a line. */
async function pidsIn(file: string, count: number): Promise<number[]> {
  let pids: number[] = [];
  await until('it is so', () => {
    pids = readFileSync(file, 'utf8').trim().split('\n').filter(Boolean).map(Number);
    return pids.length === count;
  });
  return pids;
}

t.test('the exit code or the signal is the end of a program, and both outputs are read in full', async (t) => {
  let [out, errors] = ['', ''];
  const end = await runProgram(
    shell('cat; echo problem >&2; exit 3', {
      stdin: 'x'.repeat(300_000),
      stdout: (chunk) => {
        out += chunk;
      },
      stderr: (chunk) => {
        errors += chunk;
      },
    }),
  );
  t.same(end, { cause: 'exited', exitCode: 3, signal: null });
  t.equal(out.length, 300_000);
  t.equal(errors, 'problem\n');
  t.same(await runProgram(shell('kill -TERM $$')), { cause: 'exited', exitCode: null, signal: 'SIGTERM' });
});

t.test('a program that closes its input early succeeds', async (t) => {
  t.match(await runProgram(shell('exec 0<&-; exit 0', { stdin: Buffer.alloc(1_000_000) })), { exitCode: 0 });
});

t.test('input and output can be files', async (t) => {
  const directory = temporaryDirectory(t);
  writeFileSync(join(directory, 'in'), Buffer.from([0, 255, 10]));
  const [stdin, stdout] = [openSync(join(directory, 'in'), 'r'), openSync(join(directory, 'out'), 'w')];
  await runProgram({ program: 'cat', args: [], env, stdin, stdout });
  for (const file of [stdin, stdout]) closeSync(file);
  t.same(readFileSync(join(directory, 'out')), Buffer.from([0, 255, 10]));
});

t.test('a program that cannot be started rejects with the error of the system', async (t) => {
  const directory = temporaryDirectory(t);
  writeFileSync(join(directory, 'plain'), 'x', { mode: 0o600 });
  const run = (program: string, cwd?: string) => runProgram({ program, args: [], env, cwd });
  await t.rejects(run('/no/such-program'), { code: 'ENOENT' });
  await t.rejects(run(join(directory, 'plain')), { code: 'EACCES' });
  await t.rejects(run('true', join(directory, 'nowhere')), { code: 'ENOENT' });
});

t.test('a program whose signal was aborted before is not started', async (t) => {
  const file = join(temporaryDirectory(t), 'started');
  const running = new RunningProgram(shell(`touch ${file}`, { signal: AbortSignal.abort() }));
  t.equal(running.pid, undefined);
  t.same(await running.ended, { cause: 'aborted', exitCode: null, signal: null });
  t.throws(() => readFileSync(file), { code: 'ENOENT' });
});

const stubborn = (file: string) =>
  `: > ${file}; sh -c 'trap "" TERM; echo $$ >> ${file}; while :; do sleep 0.1; done' & echo $$ >> ${file}; wait`;

t.test('deadline, signal and caller end the whole group, also members that ignore SIGTERM', async (t) => {
  for (const cause of ['timedOut', 'aborted', 'stopped'] as const) {
    for (const graceMs of [0, 50]) {
      const file = join(temporaryDirectory(t), 'pids');
      writeFileSync(file, '');
      const controller = new AbortController();
      const running = new RunningProgram(
        shell(stubborn(file), {
          graceMs,
          signal: controller.signal,
          ...(cause === 'timedOut' && { timeoutMs: 1_000 }),
          stdout: () => {},
        }),
      );
      const pids = cause === 'timedOut' ? [] : await pidsIn(file, 2);
      if (cause === 'aborted') controller.abort();
      if (cause === 'stopped') running.stop();
      t.match(await running.ended, { cause, exitCode: null });
      await until('it is so', () => pids.every((pid) => !isAlive(pid)));
      t.equal(running.hasDescendants && pids.some(isAlive), false, `${cause}, ${graceMs} ms`);
    }
  }
});

t.test('a stopped process is ended by SIGTERM', async (t) => {
  const running = new RunningProgram(shell('kill -STOP $$; exit 1', { graceMs: 600_000 }));
  await until('it is so', () => /^State:\tT/m.test(readFileSync(`/proc/${running.pid}/status`, 'utf8')));
  running.stop();
  t.same(await running.ended, { cause: 'stopped', exitCode: null, signal: 'SIGTERM' });
});

t.test('the first reason to stop a program counts', async (t) => {
  const controller = new AbortController();
  const running = new RunningProgram(shell('sleep 600', { signal: controller.signal }));
  running.stop();
  controller.abort();
  t.match(await running.ended, { cause: 'stopped', signal: 'SIGKILL' });
});

t.test('a descendant that holds the outputs open is waited for no longer than lingerMs, and lives on', async (t) => {
  const file = join(temporaryDirectory(t), 'pids');
  let out = '';
  const running = new RunningProgram(
    shell(`sleep 600 & echo $! > ${file}; echo said; exit 4`, {
      lingerMs: 20,
      stdout: (chunk) => {
        out += chunk;
      },
    }),
  );
  t.same(await running.ended, { cause: 'exited', exitCode: 4, signal: null });
  t.equal(out, 'said\n');
  t.equal(running.hasDescendants, true);
  const [pid = 0] = await pidsIn(file, 1);
  running.killDescendants();
  await until('it is so', () => !isAlive(pid));
  t.pass('until the caller ends it');
});

t.test('a reader that pauses the pipe after each chunk gets all of a flood', async (t) => {
  let bytes = 0;
  const end = await runProgram(
    shell('head -c 3000000 /dev/zero', {
      stdout: (chunk, pipe) => {
        bytes += chunk.length;
        pipe.pause();
        setImmediate(() => pipe.resume());
      },
    }),
  );
  t.match(end, { exitCode: 0 });
  t.equal(bytes, 3_000_000);
});

t.test('a program in the group of its caller is ended alone', async (t) => {
  const file = join(temporaryDirectory(t), 'pids');
  writeFileSync(file, '');
  const running = new RunningProgram(
    shell(`sleep 600 & echo $! > ${file}; wait`, { group: 'callers', stdout: () => {}, lingerMs: 20 }),
  );
  const [pid = 0] = await pidsIn(file, 1);
  t.teardown(() => process.kill(pid, 'SIGKILL'));
  running.stop();
  t.match(await running.ended, { cause: 'stopped', signal: 'SIGKILL' });
  t.equal(running.hasDescendants, false, 'it leads no group');
  t.equal(isAlive(pid), true);
});
