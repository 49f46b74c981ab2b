/** `chat` and `exec` against an agent server whose process is stopped: the state is reported, and nothing waits for ever. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { eventually } from '../hub/harness.ts';
import { command, makePlace, oratorioJson } from './harness.ts';

interface Running {
  readonly child: ChildProcess;
  readonly output: () => string;
  /** Resolves when its output matches. */
  shows(pattern: RegExp): Promise<true>;
  readonly ended: Promise<number | null>;
}

function start(t: Test, argv: readonly string[], env: Readonly<Record<string, string>> = {}): Running {
  const child = spawn(process.execPath, [command, ...argv], { cwd: place.root, env: { ...place.env, ...env } });
  t.teardown(() => child.kill('SIGKILL'));
  child.stdin.end();
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      output += text;
    });
  }
  const ended = once(child, 'close').then(([code]) => code as number | null);
  return {
    child,
    output: () => output,
    ended,
    shows: (pattern) =>
      eventually(
        () => {
          if (pattern.test(output)) return true;
          if (child.exitCode !== null) throw new Error(`it ended with ${child.exitCode}: ${output}`);
          return undefined;
        },
        () => `${pattern}: ${output}`,
      ),
  };
}

const silent = /The agent server does not answer\. Waiting for it; Ctrl-C stops waiting\./;

/** The agent server of all tests; each leaves it running, or is the last. */
const place = makePlace(t);
// The Hub does not notice before a test has: the stopped process stays stopped.
mkdirSync(place.home, { mode: 0o700 });
writeFileSync(join(place.home, 'config.json'), JSON.stringify({ Supervision: { ProbeIntervalMs: 600_000 } }));
const workspace = place.workspace('site');
const { pid } = await oratorioJson(place, 'ensure', workspace);

t.test('regression: L3 exec and chat report an agent server that does not answer, and exit', async (t) => {
  process.kill(pid, 'SIGSTOP');
  for (const name of ['exec', 'chat']) {
    const asked = start(t, [name, '--workspace', workspace, 'echo hi'], { ORATORIO_ANSWER_TIMEOUT_MS: '4000' });
    t.equal(await asked.ended, 1, name);
    t.match(asked.output(), silent);
    t.match(
      asked.output(),
      /The agent server at 127\.0\.0\.1:\d+ has not answered for 4 s: its process hangs or is stopped/,
    );
    t.match(asked.output(), /oratorio inspect.*oratorio restart/);
    t.notMatch(asked.output(), /token=/);
  }
  process.kill(pid, 'SIGCONT');
  const answered = start(t, ['exec', '--workspace', workspace, 'echo hi']);
  t.equal(await answered.ended, 0);
  t.match(answered.output(), /hi/);
  t.notMatch(answered.output(), /does not answer/, 'a server that answers is not reported as silent');
});

t.test('regression: L3 Ctrl-C ends the wait for a suspended agent server', async (t) => {
  process.kill(pid, 'SIGSTOP');
  const asked = start(t, ['exec', '--workspace', workspace, 'echo hi'], {
    ORATORIO_ANSWER_TIMEOUT_MS: '600000',
  });
  await asked.shows(silent);
  asked.child.kill('SIGINT');
  t.equal(await asked.ended, 130);
  process.kill(pid, 'SIGCONT');
});

t.test('regression: L3 chat reports a server that is suspended during a turn, and that it answers again', async (t) => {
  const patient = { ORATORIO_ANSWER_TIMEOUT_MS: '600000' };
  const chat = start(t, ['chat', '--yes', '--workspace', workspace, 'run: echo begun; sleep 10; echo over'], patient);
  await chat.shows(/begun/);
  process.kill(pid, 'SIGSTOP');
  await chat.shows(silent);
  process.kill(pid, 'SIGCONT');
  await chat.shows(/The agent server answers again\./);
  t.equal(await chat.ended, 0);

  const stuck = start(t, ['chat', '--yes', '--workspace', workspace, 'run: echo begun; sleep 600'], patient);
  await stuck.shows(/begun/);
  process.kill(pid, 'SIGSTOP');
  await stuck.shows(silent);
  stuck.child.kill('SIGINT');
  t.equal(await stuck.ended, 130, 'Ctrl-C does not wait for it');
});
