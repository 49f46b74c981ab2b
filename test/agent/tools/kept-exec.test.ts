import { execFileSync } from 'node:child_process';
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import t from 'tap';
import { createExec } from '../../../src/agent/tools/exec/exec.ts';
import { HandOverError } from '../../../src/agent/tools/exec/kept-command.ts';
import { OutputFiles } from '../../../src/agent/tools/output-files.ts';
import { endKept, keptFiles, listKept, readIdentity, readKept } from '../../../src/supervise/index.ts';
import { until } from '../../supervise/helpers.ts';
import { ids, onPosix, type Places, places, secret, server, soonMs, tookTooLong } from './kept.ts';
import { call, temporaryWorkspace } from './run-tool.ts';

t.test('a command outlives its killed agent server, and its result and output are adopted once', onPosix, async (t) => {
  const here = places(t);
  const first = server(t, here, {
    command: 'echo one; until [ -e go ]; do sleep 0.1; done; echo two; echo x >>effect; exit 3',
  });
  await first.showed('one');
  await first.kill();
  t.equal((await here.survivors()).length > 0, true, 'it runs without a server');
  let live = '';
  const adopted = here.adopt({
    onOutput: (text) => {
      live += text;
    },
  });
  writeFileSync(here.at('go'), '');
  t.strictSame(await adopted, {
    kind: 'ended',
    result: { text: 'one\ntwo\n\nExit code 3.', isError: true, exitCode: 3 },
  });
  t.equal(live, 'one\ntwo\n', 'live output has all of it');
  t.equal(readFileSync(here.at('effect'), 'utf8'), 'x\n', 'its effect is there once');
  await here.isClean();
});

t.test('a command that has ended while no agent server ran is adopted with its result', onPosix, async (t) => {
  const cases: [string, object][] = [
    ['echo done', { text: 'done', isError: false, exitCode: 0 }],
    ['exit 137', { text: '(no output)\n\nExit code 137.', isError: true, exitCode: 137 }],
    ['kill -KILL $$', { text: '(no output)\n\nThe command was ended by SIGKILL.', isError: true }],
    ['kill -TERM $$', { text: '(no output)\n\nThe command was ended by SIGTERM.', isError: true }],
    ['printf "no line end"; exit 7', { text: 'no line end\n\nExit code 7.', isError: true, exitCode: 7 }],
    ['cd ..; rm -rf "$OLDPWD"; echo gone', { text: 'gone', isError: false, exitCode: 0 }],
  ];
  for (const [command, result] of cases) {
    const here = places(t);
    const first = server(t, here, { command: `until [ -e go ]; do sleep 0.1; done; ${command}` });
    await until('a keeper', () => listKept(here.directory).some(({ id }) => readKept(here.directory, id)?.keeper));
    await first.kill();
    writeFileSync(here.at('go'), '');
    await until('its end', async () => (await here.survivors()).length === 0);
    t.strictSame(await here.adopt(), { kind: 'ended', result }, command);
    await here.isClean();
  }
});

t.test('a kill between the exit of a command and its result loses nothing', onPosix, async (t) => {
  const here = places(t);
  const first = server(t, here, { command: 'echo x >>effect; echo last; exit 4' }, 'afterExit');
  await first.exited;
  t.strictSame(await here.adopt(), {
    kind: 'ended',
    result: { text: 'last\n\nExit code 4.', isError: true, exitCode: 4 },
  });
  t.equal(readFileSync(here.at('effect'), 'utf8'), 'x\n');
  await here.isClean();
});

t.test('a kill between spawn and identity: the command is found by its marker', onPosix, async (t) => {
  const here = places(t);
  const command = 'until [ -e go ]; do sleep 0.1; done; echo found';
  await server(t, here, { command }, 'beforeIdentity').exited;
  t.equal(readKept(here.directory, here.kept().id)?.keeper, undefined);
  const adopted = here.adopt();
  writeFileSync(here.at('go'), '');
  t.match(await adopted, { kind: 'ended', result: { text: 'found' } });
  await here.isClean();
});

t.test('a kill between record and spawn: the command is known not to have run', onPosix, async (t) => {
  const here = places(t);
  await server(t, here, { command: 'echo x >>effect' }, 'beforeSpawn').exited;
  t.strictSame(await here.adopt(), { kind: 'notStarted' });
  t.notOk(existsSync(here.at('effect')));
  await here.isClean();
});

t.test('a command whose keeper was killed has an unknown outcome, with its output until then', onPosix, async (t) => {
  const here = places(t);
  const first = server(t, here, { command: 'echo some; sleep 1000' });
  await first.showed('some');
  await first.kill();
  await here.killSurvivors();
  await until('their end', async () => (await here.survivors()).length === 0);
  t.strictSame(await here.adopt(), { kind: 'unknown', output: 'some\n' });
  await here.isClean();
});

for (const [name, replace] of [
  ['removed', () => undefined],
  ['replaced by a link', (output, other) => symlinkSync(other, output)],
  ['replaced by a pipe', (output) => execFileSync('mkfifo', [output])],
  ['replaced by a directory', (output) => mkdirSync(output)],
] as const satisfies readonly (readonly [string, (output: string, other: string) => void])[]) {
  t.test(`a command whose output was ${name} is not repeated, and its outcome is unknown`, onPosix, async (t) => {
    for (const [command, dies] of [
      ['echo x >>effect; echo done', 'afterExit'],
      ['echo x >>effect; echo some; sleep 1000', undefined],
    ] as const) {
      const here = places(t);
      const first = server(t, here, { command }, dies);
      if (dies === undefined) {
        await first.showed('some');
        await first.kill();
      } else await first.exited;
      const { output } = keptFiles(here.directory, here.kept().id);
      rmSync(output);
      writeFileSync(here.at('mine'), 'mine');
      replace(output, here.at('mine'));
      t.strictSame(await here.adopt(), { kind: 'unknown', output: '' });
      t.strictSame([readFileSync(here.at('effect'), 'utf8'), readFileSync(here.at('mine'), 'utf8')], ['x\n', 'mine']);
      await here.isClean();
    }
  });
}

t.test('a record that names a process of another program touches nothing', onPosix, async (t) => {
  const here = places(t);
  await server(t, here, { command: 'true' }, 'beforeSpawn').exited;
  // Not a child of this process: a child would be proved to be ours.
  const pid = Number(execFileSync('sh', ['-c', 'sleep 1000 >/dev/null 2>&1 & echo $!']));
  t.teardown(() => process.kill(pid, 'SIGKILL'));
  const kept = here.kept();
  const identity = readIdentity(pid);
  if (typeof identity === 'string') throw new Error('no process');
  appendFileSync(keptFiles(here.directory, kept.id).record, `keeper ${identity.pid} ${identity.startedTicks}\n`);
  t.strictSame(await here.adopt(), { kind: 'notStarted' });
  t.equal(readIdentity(pid) === 'gone', false, 'the other process lives');
});

t.test('without an agent server a command ends at its deadline', onPosix, async (t) => {
  const here = places(t);
  const first = server(t, here, {
    command: 'trap "echo bye; exit 5" TERM; echo on; while :; do sleep 0.05; done',
    timeoutMs: soonMs,
  });
  await first.showed('on');
  await first.kill();
  await until('its end', async () => (await here.survivors()).length === 0);
  const { kind, result } = await endedBy(here.adopt());
  t.equal(kind, 'ended');
  t.match(result.text, /^on\n(?:Terminated\n)?bye\n\nThe command was ended because it took longer than 8000 ms/);
  await here.isClean();
});

t.test('without an agent server a command that ignores SIGTERM is killed at its deadline', onPosix, async (t) => {
  const here = places(t);
  const first = server(t, here, { command: 'trap "" TERM; echo on; while :; do sleep 0.05; done', timeoutMs: soonMs });
  await first.showed('on');
  await first.kill();
  await until('its end', async () => (await here.survivors()).length === 0);
  const { result } = await endedBy(here.adopt());
  t.match(result.text, tookTooLong);
  await here.isClean();
});

t.test('a command ends when no agent server comes in time', onPosix, async (t) => {
  const here = places(t);
  const impatient = { ...here, settings: { ...here.settings, keep: { ...here.settings.keep, patienceSeconds: 1 } } };
  const first = server(t, impatient, { command: 'echo on; sleep 1000' });
  await first.showed('on');
  await first.kill();
  await until('its end', async () => (await here.survivors()).length === 0);
  const { result } = await endedBy(here.adopt());
  t.match(result.text, /^on\n\nThe command was ended because no agent server came back in time\./);
  await here.isClean();
});

t.test('an adopted command keeps its deadline, and is ended when the turn is interrupted', onPosix, async (t) => {
  for (const [timeoutMs, expected] of [
    [soonMs, 'ended'],
    [60_000, 'interrupted'],
  ] as const) {
    const here = places(t);
    const first = server(t, here, { command: 'echo on; sleep 1000', timeoutMs });
    await first.showed('on');
    await first.kill();
    const interruption = new AbortController();
    const adopted = here.adopt({ signal: interruption.signal }).catch(() => ({ kind: 'interrupted' as const }));
    if (expected === 'interrupted') interruption.abort();
    t.equal((await adopted).kind, expected);
    await here.isClean();
  }
});

t.test('a hand-over leaves the command to the next agent server', onPosix, async (t) => {
  const here = places(t);
  const handOver = new AbortController();
  const onOutput = () => handOver.abort(new HandOverError());
  const context = { ...ids, workspacePath: here.workspacePath, signal: handOver.signal, onOutput };
  const command = 'echo on; until [ -e go ]; do sleep 0.1; done; echo off';
  await t.rejects(call(createExec(here.settings), { command }, context), { name: 'HandOverError' });
  t.ok((await here.survivors()).length > 0, 'it runs on');
  const adopted = here.adopt();
  writeFileSync(here.at('go'), '');
  t.match(await adopted, { kind: 'ended', result: { text: 'on\noff' } });
  await here.isClean();
});

t.test('a secret that is split over two writes and a kill is masked everywhere', onPosix, async (t) => {
  const here = places(t);
  const [one, two] = [secret.slice(0, 9), secret.slice(9)];
  const command = `echo begin; printf %s ${one}; touch half; until [ -e go ]; do sleep 0.1; done; echo ${two}; echo end`;
  const first = server(t, here, { command });
  await first.showed('begin');
  await until('the first half', () => existsSync(here.at('half')));
  await first.kill();
  let live = '';
  const adopted = here.adopt({
    onOutput: (text) => {
      live += text;
    },
  });
  t.equal(
    statSync(keptFiles(here.directory, here.kept().id).output).mode & 0o777,
    0o600,
    'only the user reads the raw output',
  );
  writeFileSync(here.at('go'), '');
  t.match(await adopted, { result: { text: 'begin\n[redacted]\nend' } });
  t.equal(first.shown(), 'begin\n');
  t.equal(live, 'begin\n[redacted]\nend\n');
  await here.isClean();
});

t.test('files of a command stay until its result is stored', onPosix, async (t) => {
  const here = places(t);
  let store: () => void = () => {};
  const onStored = (work: () => void) => {
    store = work;
  };
  const result = await call(
    createExec(here.settings),
    { command: 'echo x' },
    { ...ids, workspacePath: here.workspacePath, onStored },
  );
  t.strictSame(await here.adopt({ onStored: () => {} }), { kind: 'ended', result });
  store();
  await here.isClean();
});

t.test('the stop of a workspace ends its commands and removes their files', onPosix, async (t) => {
  const here = places(t);
  const first = server(t, here, { command: 'setsid sleep 1000 & echo on; sleep 1000' });
  await first.showed('on');
  await first.kill();
  t.ok((await endKept(here.directory)) > 0);
  t.strictSame(await here.survivors(), []);
  t.notOk(existsSync(here.directory));
});

t.test('40 MB of output: both ends are shown, the first 32 MiB are stored, nothing blocks', onPosix, async (t) => {
  const here = places(t);
  const outputs = new OutputFiles(temporaryWorkspace(t));
  const settings = { ...here.settings, outputs };
  const command = 'echo first; head -c 40000000 /dev/zero | tr "\\0" "a"; echo; echo last';
  const { text } = await call(createExec(settings), { command }, { ...ids, workspacePath: here.workspacePath });
  t.match(text, /^first\naaa/);
  t.match(text, /aaa\nlast$/);
  t.match(text, /of 40000012 characters are left out/);
  const [file = ''] = /\S+exec-\w+\.txt/.exec(text) ?? [];
  t.equal(statSync(file).size, 32 * 1024 * 1024);
  await here.isClean();
});

t.test(
  'output that is faster than its reader is skipped: the file stays small, a later line is shown',
  onPosix,
  async (t) => {
    const here = places(t);
    const sizes: number[] = [];
    const seen = setInterval(() => {
      for (const { id } of listKept(here.directory))
        sizes.push(statSync(keptFiles(here.directory, id).output, { throwIfNoEntry: false })?.size ?? 0);
    }, 5);
    t.teardown(() => clearInterval(seen));
    // A cut loses the output of its moment.
    const command = 'head -c 1000000000 /dev/zero; sleep 1; echo; echo last';
    const { text } = await call(createExec(here.settings), { command }, { ...ids, workspacePath: here.workspacePath });
    t.match(text, /\nlast$/);
    t.ok(Math.max(...sizes) < 1_000_000_000, `${Math.max(...sizes)} bytes`);
    await here.isClean();
  },
);

t.test('the last lines of a fast output are shown, although the server was busy', onPosix, async (t) => {
  const here = places(t);
  const command = 'head -c 100000000 /dev/zero; echo; echo last; echo >written; until [ -e go ]; do sleep 0.1; done';
  const called = call(createExec(here.settings), { command }, { ...ids, workspacePath: here.workspacePath });
  await until('a kept command', () => listKept(here.directory).length === 1);
  // Blocks this process, and with it the reader, until the last line is written.
  const clock = new Int32Array(new SharedArrayBuffer(4));
  while (!existsSync(here.at('written'))) Atomics.wait(clock, 0, 0, 20);
  const [kept] = listKept(here.directory);
  await until('an empty file', () => statSync(keptFiles(here.directory, kept?.id ?? '').output).size === 0);
  writeFileSync(here.at('go'), '');
  t.match((await called).text, /\nlast$/);
  await here.isClean();
});

async function endedBy(adopted: ReturnType<Places['adopt']>) {
  const end = await adopted;
  if (end.kind !== 'ended') throw new Error(end.kind);
  return end;
}
