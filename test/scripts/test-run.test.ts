import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import t from 'tap';
import packageJson from '../../package.json' with { type: 'json' };
import { asBatch, inMemory } from '../../scripts/test-run.mjs';
import { root } from '../../scripts/toolchain.mjs';

interface Report {
  readonly processes: readonly number[];
  readonly directories: readonly string[];
}

/** Starts a run of one file that waits, and resolves with the processes and files of the file. */
async function startWaitingRun(report: string) {
  const inherited = Object.entries(process.env).filter(
    ([name]) => !/^_?TAP|^TMPDIR$|^ORATORIO_TEST_(?!PROGRAMS$)/.test(name),
  );
  const env = { ...Object.fromEntries(inherited), ORATORIO_TEST_REPORT: report };
  const run = spawn(process.execPath, [join(root, 'test/fixtures/tap/interrupted/run.mjs')], {
    cwd: root,
    env,
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  while (!existsSync(report)) await pause(50);
  return { run, report: JSON.parse(readFileSync(report, 'utf8')) as Report };
}

/** A process that has ended, and waits for its parent to notice, counts as gone. */
function isRunning(pid: number): boolean {
  try {
    return !/^State:\s*[ZX]/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
  } catch {
    return false;
  }
}

for (const [signal, code] of [
  ['SIGTERM', 143],
  ['SIGINT', 130],
] as const) {
  t.test(
    `${signal} during a run ends its processes and removes its directories`,
    { skip: process.platform !== 'linux' && 'needs /proc' },
    async (t) => {
      const { run, report } = await startWaitingRun(join(t.testdir(), 'report.json'));
      t.same(report.processes.filter(isRunning), report.processes, 'the file and its processes run');
      t.same(report.directories.filter(existsSync), report.directories);
      run.kill(signal);
      const [exitCode] = (await once(run, 'exit')) as [number | null];
      t.equal(exitCode, code);
      t.same(report.processes.filter(isRunning), [], 'no process is left');
      t.same(report.directories.filter(existsSync), [], 'no directory is left');
    },
  );
}

t.test('a signal for npm reaches the run: the shell that npm starts becomes the run', async (t) => {
  const command = packageJson.scripts.test.replace('scripts/test.mjs', '-p process.pid');
  const { pid, stdout, stderr } = spawnSync('sh', ['-c', command], { encoding: 'utf8' });
  t.equal(stdout.trim(), String(pid), stderr);
});

t.test('a command with its directory in memory writes there, and leaves nothing where the directory was', (t) => {
  const directory = t.testdir();
  const words = inMemory(directory);
  const [command = '', ...rest] = [...words, 'sh', '-c', 'echo it > "$1/file" && stat -f -c %T "$1"', '-', directory];
  const { status, stdout, stderr } = spawnSync(command, rest, { encoding: 'utf8' });
  t.equal(status, 0, stderr);
  // Without the right to mount, the command has the directory unchanged.
  if (words.length > 0) t.equal(stdout, 'tmpfs\n');
  t.same(readdirSync(directory), words.length > 0 ? [] : ['file']);
  t.end();
});

/** Field of `/proc/PID/stat` after the name, and its value for SCHED_BATCH; proc(5). */
const policyField = 38;
const batchPolicy = '3';

t.test('the processes of a command are scheduled as a batch, where there is such a policy', (t) => {
  const words = asBatch();
  const [command = '', ...rest] = [...words, 'sh', '-c', 'true; cat /proc/self/stat'];
  const { stdout, stderr } = spawnSync(command, rest, { encoding: 'utf8' });
  const fields = stdout.slice(stdout.lastIndexOf(')') + 2).split(' ');
  t.equal(fields[policyField], words.length > 0 ? batchPolicy : '0', stderr);
  t.end();
});
