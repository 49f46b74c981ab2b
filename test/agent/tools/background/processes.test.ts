/** Background processes through their tools: real shells, and nothing of them left. */
import { existsSync, readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import * as v from 'valibot';
import type { AnyActorRef } from 'xstate';
import { BackgroundProcesses, createBuiltinTools, OutputFiles } from '../../../../src/agent/index.ts';
import { Config } from '../../../../src/config/schema.ts';
import { markerVariable } from '../../../../src/supervise/index.ts';
import { until } from '../../../supervise/helpers.ts';
import { call, onBug, temporaryWorkspace } from '../run-tool.ts';

const secret = 'a-secret-of-the-user';

function stage(t: Test) {
  const workspacePath = temporaryWorkspace(t);
  const outputs = new OutputFiles(temporaryWorkspace(t));
  const actors: AnyActorRef[] = [];
  const processes = new BackgroundProcesses({
    secrets: [secret],
    outputs,
    onBug,
    observe: (actor) => actors.push(actor),
  });
  t.teardown(() => processes.close());
  const tools = createBuiltinTools({
    ...{
      tools: v.parse(Config, { Tools: { Shell: { Sandbox: 'off' } } }).Tools,
      blockedPaths: [],
      passEnvironment: [],
      secrets: [secret],
    },
    ...{ environment: { ...process.env, [markerVariable]: 'test-of-processes' }, home: temporaryWorkspace(t) },
    ...{ outputs, processes },
  });
  const run = async (name: string, args: unknown, threadId = 'thread_a') => {
    const tool = tools.find((each) => each.name === name);
    if (!tool) throw new Error(name);
    return call(tool, args, { workspacePath, threadId });
  };
  const begin = async (command: string, threadId?: string) => {
    const { text } = await run('Exec', { command, background: true }, threadId);
    return { id: /proc_[0-9a-f]{8}/.exec(text)?.[0] ?? '', text };
  };
  /** Reads until the output so far fits. */
  const readUntil = async (id: string, pattern: RegExp) => {
    let all = '';
    await until(`${pattern}`, async () => {
      all += (await run('ExecOutput', { id, waitMs: 1_000 })).text;
      return pattern.test(all);
    });
    return all;
  };
  return { workspacePath, processes, run, begin, readUntil, actors };
}

/** A zombie has ended. */
const isAlive = (pid: number): boolean => {
  try {
    return !/^State:\tZ/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
  } catch {
    return false;
  }
};
const pidIn = (file: string) => Number(readFileSync(file, 'utf8'));

t.test('a command in the background can be read, fed and stopped', async (t) => {
  const { run, begin, processes } = stage(t);
  const { id, text } = await begin('echo ready; while read -r line; do echo "got $line"; done; echo over');
  t.match(text, /^ready\n\nThe process proc_[0-9a-f]{8} \(pid \d+\) is running\.$/);
  t.match(processes.list('thread_a'), [{ id, state: 'running', pid: Number, command: /^echo ready/ }]);
  t.match(await run('ExecInput', { id, text: 'one\ntwo\n' }), { text: /^got one\ngot two\n/, isError: false });
  t.match(await run('ExecOutput', { id }), { text: /^\(no new output\)/ });
  t.match(await run('ExecStop', { id }), { text: /has ended by SIG(TERM|KILL)\.$/, isError: false });
  t.match(await run('ExecInput', { id, text: 'x' }), { isError: true, text: /reads no input/ });
  t.match(await run('ExecOutput', { id }), { text: /^\(no new output\)[\s\S]*has ended/ });
});

t.test('a command that ends within the first second returns its output and exit code', async (t) => {
  const { run, begin, actors } = stage(t);
  t.match(await run('Exec', { command: 'echo out; echo err >&2; exit 3', background: true }), {
    text: /^out\nerr\n\nThe process \w+ has ended with exit code 3\.$/,
    exitCode: 3,
  });
  t.match((await begin('no-such-program-anywhere')).text, /exit code 127/);
  t.equal(actors.length, 2);
});

t.test('a wait for output ends with the output, with the end of the process, or with its time', async (t) => {
  const { run, begin, workspacePath } = stage(t);
  const { id } = await begin('until [ -e go ]; do sleep 0.02; done; echo here; until [ -e end ]; do sleep 0.02; done');
  t.match(await run('ExecOutput', { id, waitMs: 50 }), { text: /^\(no new output\)[\s\S]*is running/ });
  const output = run('ExecOutput', { id, waitMs: 60_000 });
  await run('Exec', { command: 'touch go' });
  t.match(await output, { text: /^here\n/ });
  const end = run('ExecOutput', { id, waitMs: 60_000 });
  await run('Exec', { command: 'touch end' });
  t.match(await end, { text: /has ended with exit code 0/, exitCode: 0 });
  t.ok(existsSync(join(workspacePath, 'end')));
});

t.test('an interrupted wait ends at once, and the process runs on', async (t) => {
  const { begin, processes } = stage(t);
  const { id } = await begin('sleep 3100');
  const process = processes.get('thread_a', id);
  const interrupt = new AbortController();
  const waiting = process?.output.arrives(600_000, interrupt.signal);
  interrupt.abort();
  await waiting;
  t.ok(process?.isRunning);
});

t.test('a stop ends descendants that ignore SIGTERM, left the group or cleared nothing', async (t) => {
  const { run, begin, workspacePath } = stage(t);
  const { id } = await begin(
    "trap '' TERM; sleep 3101 & echo $! > child; (trap '' TERM; setsid sleep 3102 & echo $! > escaped); echo up; while :; do sleep 0.1; done",
  );
  const pids = ['child', 'escaped'].map((name) => pidIn(join(workspacePath, name)));
  await run('ExecStop', { id });
  t.same(pids.filter(isAlive), []);
});

t.test('processes that a command leaves at its exit are ended', async (t) => {
  const { begin, workspacePath, processes } = stage(t);
  const { id } = await begin('(setsid sleep 3103 > /dev/null 2>&1 & echo $! > escaped); sleep 3104 & echo $! > child');
  await processes.get('thread_a', id)?.ended;
  const pids = ['child', 'escaped'].map((name) => pidIn(join(workspacePath, name)));
  t.same(pids.filter(isAlive), []);
});

t.test('a flood is shortened to both ends, in bounded memory, and the file has the rest', async (t) => {
  const { workspacePath, run, begin, readUntil } = stage(t);
  const flood = 'head -c 3000000 /dev/zero | tr "\\0" x';
  const { id, text } = await begin(
    `until [ -e go ]; do sleep 0.02; done; echo first; ${flood}; echo; echo last; touch written; sleep 3105`,
  );
  await run('Exec', { command: 'touch go' });
  await until('the flood is written', () => existsSync(join(workspacePath, 'written')));
  const all = text + (await readUntil(id, /last/));
  t.ok(all.length < 100_000, `${all.length} characters`);
  const [, file = ''] = /The whole output is in (\S+exec-[0-9a-f]+\.txt)/.exec(all) ?? [];
  t.ok(readFileSync(file, 'utf8').startsWith('first\nxxx'));
  t.match(await run('GrepFiles', { path: file, pattern: '^last$' }), { isError: false, text: /last/ });
});

t.test('secrets are masked, also across chunks', async (t) => {
  const { begin } = stage(t);
  const half = secret.length / 2;
  const { text } = await begin(`printf '${secret.slice(0, half)}'; sleep 0.2; echo '${secret.slice(half)}'`);
  t.notMatch(text, secret);
});

t.test('a conversation sees its own processes only', async (t) => {
  const { run, begin } = stage(t);
  const { id } = await begin('sleep 3106');
  for (const [name, args] of [
    ['ExecOutput', { id }],
    ['ExecInput', { id, text: 'x' }],
    ['ExecStop', { id }],
  ] as const) {
    t.match(await run(name, args, 'thread_b'), {
      isError: true,
      text: /has no background process proc_.*It has: none/,
    });
  }
  t.match(await run('ExecOutput', { id: 'proc_0' }), { isError: true, text: new RegExp(`It has: ${id}`) });
});

t.test('at most 16 processes of a conversation run at a time; one that is stopped makes room', async (t) => {
  const { run, begin } = stage(t);
  const started = await Promise.all(Array.from({ length: 16 }, () => begin('sleep 3107')));
  t.match(await run('Exec', { command: 'sleep 3108', background: true }), { isError: true, text: /16 background/ });
  t.match((await begin('echo other', 'thread_b')).text, /^other/);
  await run('ExecStop', { id: started[3]?.id });
  t.match((await begin('echo again')).text, /^again/);
});

t.test('the end of a conversation ends its processes, and no other one', async (t) => {
  const { begin, processes } = stage(t);
  await begin('sleep 3109');
  const other = await begin('sleep 3110', 'thread_b');
  const pid = processes.list('thread_a')[0]?.pid ?? 0;
  await processes.endThread('thread_a');
  t.same([isAlive(pid), processes.list('thread_a')], [false, []]);
  t.match(processes.list('thread_b'), [{ id: other.id, state: 'running' }]);
});

t.test('the end of the server ends all processes, and no new one starts', async (t) => {
  const { run, begin, processes } = stage(t);
  await begin('sleep 3111');
  const pid = processes.list('thread_a')[0]?.pid ?? 0;
  await processes.close();
  t.notOk(isAlive(pid));
  t.match(await run('Exec', { command: 'sleep 3112', background: true }), { isError: true });
});

t.test('a process that does not read takes a bounded input', async (t) => {
  const { run, begin } = stage(t);
  const { id } = await begin('sleep 3113');
  const text = 'x'.repeat(65_536);
  const results = [];
  for (let round = 0; round < 6; round += 1) results.push(await run('ExecInput', { id, text }));
  t.ok(results.some(({ isError }) => isError));
});

t.test('a server in the background answers the commands that follow', async (t) => {
  const { run, begin } = stage(t);
  const free = await new Promise<number>((resolve) => {
    const probe = createServer().listen(0, '127.0.0.1', () => {
      const address = probe.address();
      probe.close(() => resolve(typeof address === 'object' && address ? address.port : 0));
    });
  });
  const script = `require("http").createServer((q, a) => a.end("hello")).listen(${free}, "127.0.0.1", () => console.log("up"))`;
  const { id } = await begin(`"${process.execPath}" -e '${script}'`);
  const ask = `"${process.execPath}" -e 'fetch("http://127.0.0.1:${free}").then((a) => a.text()).then(console.log)'`;
  await until('it answers', async () => (await run('Exec', { command: ask })).text.startsWith('hello'));
  await run('ExecStop', { id });
});

t.test('arguments that cannot be meant are refused', async (t) => {
  const { run } = stage(t);
  await t.rejects(run('ExecOutput', {}));
  await t.rejects(run('ExecInput', { id: 'proc_1', text: '' }));
  await t.rejects(run('ExecInput', { id: 'proc_1', text: 'x'.repeat(65_537) }));
  await t.rejects(run('ExecOutput', { id: 'proc_1', waitMs: -1 }));
});
