/**
 * Gives a run of the tests a directory for temporary files, and ends the run: all processes, all directories. Plain
 * JavaScript without dependencies, as `test.mjs` is.
 */
import { spawnSync } from 'node:child_process';
import { chmodSync, existsSync, mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync } from 'node:fs';
import { freemem, tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { root } from './toolchain.mjs';

const roundMs = 20;
/** Rounds in which processes may end after SIGTERM: PostgreSQL removes its shared memory. */
const gentleRounds = 100;
const rounds = 400;

/** Exit codes of a run that a signal ends: 128 and the number of the signal. */
const interruptions = { SIGHUP: 129, SIGINT: 130, SIGTERM: 143 };

/**
 * Starts a run. Its processes are found by `TMPDIR`, which our own supervisor hands on to its children, so that a detached
 * process group is found as well; and by descent. A signal ends the run and this process with it.
 * @param beforeEnd waits for processes that must not be killed when a signal arrives
 * @returns variables for the environment of the run's processes; `end`, which leaves no process and no directory of the run;
 *   `isInterrupted`, after which this process exits automatically
 */
export function startRun(beforeEnd) {
  // Downloads stay for later runs.
  const cache = process.env.ORATORIO_TEST_CACHE ?? tmpdir();
  const directory = mkdtempSync(join(tmpdir(), 'oratorio-test-'));
  // Mode of the system's directory for temporary files: tests become other users.
  chmodSync(directory, 0o1777);
  const name = basename(directory);
  const env = { TMPDIR: directory, ORATORIO_TEST_RUN: name, ORATORIO_TEST_CACHE: cache };
  const end = async () => {
    await endProcesses(directory);
    for (const path of [directory, ...namedAfter(name)]) rmSync(path, { recursive: true, force: true, maxRetries: 5 });
  };
  let isInterrupted = false;
  for (const [signal, code] of Object.entries(interruptions)) {
    process.on(signal, async () => {
      if (isInterrupted) return;
      isInterrupted = true;
      await beforeEnd?.();
      await end();
      process.exit(code);
    });
  }
  return { env, end, isInterrupted: () => isInterrupted };
}

/** With less, the files of the tests could take the memory that their processes need. In bytes. */
const ampleMemory = 8 * 2 ** 30;

/**
 * Words before a command that have it, and all that it starts, find `directory` in memory, where the many small files of the
 * tests cost a third less of the kernel's time. Others do not see that file system, and it goes with the last process that does.
 * @returns {readonly string[]} no words where it cannot be mounted, as for a normal user, or memory is short
 */
export function inMemory(directory) {
  const mounts = 'mount -t tmpfs -o mode=1777 tmpfs "$0" && exec "$@"';
  const words = ['unshare', '--mount', '--propagation', 'slave', 'sh', '-c', mounts, directory];
  if (process.platform !== 'linux' || freemem() < ampleMemory) return [];
  return spawnSync(words[0], [...words.slice(1), 'true'], { stdio: 'ignore' }).status === 0 ? words : [];
}

/**
 * Words before a command that has it scheduled as a batch, with all that it starts: a process that is woken does not interrupt the
 * running one. Tests and their programs wake each other all the time; a core then changes from one to another a third less often.
 * @returns {readonly string[]} no words where there is no such policy
 */
export function asBatch() {
  const words = ['chrt', '--batch', '0'];
  return spawnSync(words[0], [...words.slice(1), 'true'], { stdio: 'ignore' }).status === 0 ? words : [];
}

/** Directories that a run has outside of its own: bundles in the checkout, and stacks in memory. */
function namedAfter(name) {
  const parents = [join(root, '.tap'), '/dev/shm'].filter((parent) => existsSync(parent));
  return parents.flatMap((parent) =>
    readdirSync(parent)
      .filter((entry) => entry.includes(name))
      .map((entry) => join(parent, entry)),
  );
}

/** Sends SIGTERM once, then SIGKILL until none is left: a process may start another one between the search and its end. */
async function endProcesses(directory) {
  for (let round = 0; round < rounds; round += 1) {
    const left = processesOf(directory);
    if (left.length === 0) return;
    if (round === 0) for (const pid of left) kill(pid, 'SIGTERM');
    if (round >= gentleRounds) for (const pid of left) kill(pid, 'SIGKILL');
    await pause(roundMs);
  }
  console.error(`✖ Processes of the tests that cannot be ended: ${processesOf(directory).join(', ')}`);
}

function kill(pid, signal) {
  try {
    process.kill(pid, signal);
  } catch {
    // The process has ended, or belongs to another user.
  }
}

/** Ids of this process's descendants and of all that carry the directory in environment, command line or working directory. */
function processesOf(directory) {
  const all = existsSync('/proc/self/environ') ? fromProc(directory) : fromPs();
  const found = new Set(all.filter(({ isMarked }) => isMarked).map(({ pid }) => pid));
  found.add(process.pid);
  for (let size = 0; size !== found.size; ) {
    size = found.size;
    for (const { pid, parent } of all) if (found.has(parent)) found.add(pid);
  }
  found.delete(process.pid);
  return [...found];
}

function fromProc(directory) {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => {
      try {
        const stat = readFileSync(`/proc/${name}/stat`, 'utf8');
        const [state, parent] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
        if (state === 'Z') return [];
        return [{ pid: Number(name), parent: Number(parent), isMarked: isMarked(name, directory) }];
      } catch {
        return [];
      }
    });
}

function isMarked(pid, directory) {
  const read = (what, how) => {
    try {
      return how(`/proc/${pid}/${what}`, 'utf8');
    } catch {
      return '';
    }
  };
  return [read('environ', readFileSync), read('cmdline', readFileSync), read('cwd', readlinkSync)].some((text) =>
    text.includes(directory),
  );
}

/** Elsewhere the environment of a process is not to be had: descendants only. */
function fromPs() {
  const { stdout, pid: own } = spawnSync('ps', ['-A', '-o', 'pid=,ppid='], { encoding: 'utf8' });
  return [...stdout.matchAll(/(\d+)\s+(\d+)/g)]
    .map(([, pid, parent]) => ({ pid: Number(pid), parent: Number(parent), isMarked: false }))
    .filter(({ pid }) => pid !== own);
}
