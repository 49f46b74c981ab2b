import { closeSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import t, { type Test } from 'tap';
import { defaults } from '../../../src/deploy/defaults.ts';
import { childEnvironment, overridesOf } from '../../../src/deploy/engine/child-environment.ts';
import { type ProgramCall, runProgram } from '../../../src/deploy/engine/run.ts';

const env = { PATH: process.env['PATH'] ?? '' };
const shell = (script: string, options: Partial<ProgramCall> = {}): ReturnType<typeof runProgram> =>
  runProgram({ program: 'sh', args: ['-c', script], name: 'sh', env, timeoutMs: 60_000, ...options });

function directoryOf(t: Test): string {
  const directory = mkdtempSync(join(tmpdir(), 'oratorio-run-'));
  t.teardown(() => rmSync(directory, { recursive: true, force: true }));
  return directory;
}

t.test('how a program ends is the answer, not an error', async (t) => {
  t.strictSame(await shell('cat; echo problem >&2; exit 3', { input: 'in' }), {
    exitCode: 3,
    stdout: 'in',
    stderr: 'problem\n',
  });
  t.match(await shell('kill -9 $$'), { exitCode: 137 });
  t.match(await shell('exec 0<&-; exit 0', { input: 'x'.repeat(1_000_000) }), { exitCode: 0 });
});

t.test('neither lines nor output show a secret, and the program does not see ours', async (t) => {
  const lines: string[] = [];
  const secrets = ['very-secret-value'];
  const script = 'printf "a very-sec"; sleep 0.05; printf "ret-value b\\n"; echo very-secret-value >&2; env';
  const result = await shell(script, { secrets, onLine: (line) => lines.push(line) });
  t.notMatch(JSON.stringify([result, lines]), 'very-secret');
  t.ok(lines.includes('a [redacted] b'));
  t.notMatch(result.stdout, /HOME=/);
});

t.test('output is bounded', async (t) => {
  const { stdout } = await shell(`yes 0123456789 | head -c ${3 * defaults.outputBytes}`);
  t.ok(stdout.length <= defaults.outputBytes);
  t.ok(stdout.length > defaults.outputBytes - 100);
});

t.test('input and output can be files', async (t) => {
  const directory = directoryOf(t);
  writeFileSync(join(directory, 'in'), Buffer.from([0, 255, 10]));
  const [inputFile, outputFile] = [openSync(join(directory, 'in'), 'r'), openSync(join(directory, 'out'), 'w')];
  await shell('cat', { inputFile, outputFile });
  closeSync(inputFile);
  closeSync(outputFile);
  t.strictSame(readFileSync(join(directory, 'out')), Buffer.from([0, 255, 10]));
});

for (const [what, code] of [
  ['the deadline', 'engineFailed'],
  ['an abort', 'cancelled'],
] as const) {
  t.test(`${what} ends the whole group, also members that ignore SIGTERM`, async (t) => {
    const file = join(directoryOf(t), 'pids');
    const controller = new AbortController();
    const script = `sh -c 'trap "" TERM; echo $$ >> ${file}; while :; do sleep 0.1; done' & echo $$ >> ${file}; wait`;
    const options = code === 'cancelled' ? { signal: controller.signal } : { timeoutMs: 1_500 };
    const rejected = t.rejects(shell(script, options), { code });
    const pids = await pidsIn(file, 2, rejected);
    controller.abort();
    await rejected;
    for (const pid of pids) t.notOk(await lives(pid));
  });
}

t.test('a program that leaves a helper behind does not keep us waiting', async (t) => {
  const file = join(directoryOf(t), 'pids');
  t.match(await shell(`sleep 300 & echo $! > ${file}; exit 0`), { exitCode: 0 });
  process.kill(Number(readFileSync(file, 'utf8')), 'SIGKILL');
});

t.test('a program that is not there is a typed error', async (t) => {
  await t.rejects(shell('', { program: '/no/such-program' }), { code: 'engineMissing', message: /such-program/ });
  await t.rejects(shell('', { signal: AbortSignal.abort() }), { code: 'cancelled' });
});

t.test('a child gets the variables that it needs and none that would override .env', async (t) => {
  const caller = {
    PATH: '/bin',
    HOME: '/root',
    AWS_SECRET: 'x',
    HTTP_PROXY: 'http://proxy',
    COMPOSE_FILE: 'other.yml',
  };
  t.strictSame(childEnvironment(caller), { PATH: '/bin', HOME: '/root', HTTP_PROXY: 'http://proxy' });
  t.strictSame(childEnvironment(caller, { without: ['HTTP_PROXY', 'PATH'], extra: { DOCKER_HOST: 'unix:///s' } }), {
    PATH: '/bin',
    HOME: '/root',
    DOCKER_HOST: 'unix:///s',
  });
  const values = new Map([
    ['AWS_SECRET', 'y'],
    ['HOME', '/root'],
  ]);
  t.strictSame(overridesOf(caller, values), ['AWS_SECRET']);
});

async function pidsIn(file: string, count: number, ended: Promise<unknown>): Promise<number[]> {
  let isOver = false;
  void ended.finally(() => {
    isOver = true;
  });
  for (;;) {
    const pids = read(file)
      .split('\n')
      .filter((line) => line !== '')
      .map(Number);
    if (pids.length >= count || isOver) return pids;
    await sleep(10);
  }
}

function read(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    // Not written yet.
    return '';
  }
}

/** Killed is not gone at once. */
async function lives(pid: number): Promise<boolean> {
  for (let look = 0; look < 500; look++) {
    try {
      if (/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'))) return false;
    } catch {
      return false;
    }
    await sleep(20);
  }
  return true;
}
