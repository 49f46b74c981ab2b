/** Tools that run as tasks of their server. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import {
  type CallOptions,
  call,
  everything,
  http,
  inState,
  nothingLeft,
  quick,
  reached,
  room,
  stdio,
  until,
} from './helpers.ts';
import { ModernServer } from './modern-server.ts';

const tool = '__simulate-research-query';

t.test('a tool that needs a task is polled until its result', async (t) => {
  const mcp = room(t, { all: stdio([everything, 'stdio']) });
  mcp.servers.start();
  t.match(await inState(mcp, 'all', 'ready'), { toolProblems: undefined });
  let output = '';
  const result = await call(mcp, tool, { topic: 'tides' }, { onOutput: (text) => (output += text) });
  t.match(result, { isError: false, text: /tides[\s\S]*Stage 4/ });
  t.match(output, /1 Gathering sources\.\.\.\n[\s\S]*Generating report/);
});

t.test('a task that asks its user continues with the answer', async (t) => {
  const mcp = room(t, { all: stdio([everything, 'stdio']) });
  mcp.servers.start();
  await inState(mcp, 'all', 'ready');
  const asked: string[] = [];
  const result = await call(
    mcp,
    tool,
    { topic: 'python', ambiguous: true },
    {
      async elicit(form) {
        asked.push(JSON.stringify(form));
        return { action: 'accept', content: { interpretation: 'snake' } };
      },
    },
  );
  t.match(asked, [/multiple interpretations/]);
  t.match(result, { isError: false, text: /Interpretation: snake|snake/ });
});

t.test('an interrupted call cancels its task', async (t) => {
  const sent = join(t.testdir(), 'sent');
  const tee = 'tee "$0" | exec "$@"';
  const all = stdio(['-c', tee, sent, process.execPath, everything, 'stdio'], { command: 'sh' });
  const mcp = room(t, { all });
  mcp.servers.start();
  await inState(mcp, 'all', 'ready');
  const controller = new AbortController();
  const interrupt = () => controller.abort(new Error('the turn was interrupted'));
  const running = call(mcp, tool, { topic: 'tides' }, { signal: controller.signal, onOutput: interrupt });
  await t.rejects(running, { message: 'the turn was interrupted' });
  await until('the task is cancelled', () => readFileSync(sent, 'utf8').includes('"method":"tasks/cancel"'));
  t.match(await call(mcp, '__echo', { message: 'still here' }), { text: 'Echo: still here' });
});

t.test('a call that takes longer than its limit cancels its task', async (t) => {
  const mcp = room(t, { all: stdio([everything, 'stdio'], { toolTimeoutSec: 1 }) });
  mcp.servers.start();
  await inState(mcp, 'all', 'ready');
  t.match(await call(mcp, tool, { topic: 'tides' }), {
    isError: true,
    text: /did not answer within 1 s and was cancelled/,
  });
});

const found = (text: string) => ({
  status: 'completed',
  result: { resultType: 'complete', content: [{ type: 'text', text }] },
});

/** Starts a server of 2026-07-28 that runs `research` as a task, and MCP services that use it. */
async function researcher(t: Test) {
  const server = await ModernServer.start(t, 0, true);
  const mcp = room(t, { small: http(server.url) }, { restartPolicy: quick });
  mcp.servers.start();
  await inState(mcp, 'small', 'ready');
  return { server, mcp };
}

/** Work in another process, from the view of the turn. */
function remoteWork(handle?: string, isLeft = false) {
  const saved: string[] = [];
  return { handle, saved, save: (given: string) => void saved.push(given), isLeft: () => isLeft };
}

t.test(
  '2026: a call that its server runs as a task is polled until its result; other calls are not polled',
  async (t) => {
    const { server, mcp } = await researcher(t);
    t.same(await call(mcp, '__say', { text: 'hello' }), { text: 'hello', isError: false });
    t.match(await call(mcp, '__refuse', {}), { isError: true, text: /error -32602: no refuse today/ });
    let output = '';
    const remote = remoteWork();
    const result = await call(
      mcp,
      '__research',
      {},
      {
        remote,
        onOutput(text) {
          output += text;
          server.brain.setTasks(found('the tides'));
        },
      },
    );
    t.same(result, { text: 'the tides', isError: false });
    t.equal(output, '1 searching\n');
    t.match(
      remote.saved.map((handle) => JSON.parse(handle)),
      [{ generation: 'v2', taskId: 'research-0' }],
    );
  },
);

t.test('2026: progress, cancellation and questions of calls without a task work beside tasks', async (t) => {
  const { server, mcp } = await researcher(t);
  const controller = new AbortController();
  let steps = '';
  const running = call(
    mcp,
    '__wait',
    {},
    {
      signal: controller.signal,
      onOutput(text) {
        steps += text;
        controller.abort(new Error('the turn was interrupted'));
      },
    },
  );
  await t.rejects(running, { message: 'the turn was interrupted' });
  t.match(steps, /1 still/);
  await until('the call is cancelled', () => server.cancelled.length === 1);
  const asked: unknown[] = [];
  const form = { message: 'Who?', requestedSchema: { type: 'object', properties: { name: { type: 'string' } } } };
  const elicit: CallOptions['elicit'] = async (question) => {
    asked.push(question);
    return { action: 'accept', content: { name: 'Ann' } };
  };
  t.match(await call(mcp, '__say', form, { elicit }), { text: /"name":"Ann"/ });
  t.equal(asked.length, 1);
});

t.test('2026: a task that asks its user continues with the answer, and is asked once', async (t) => {
  const { server, mcp } = await researcher(t);
  const requestedSchema = { type: 'object', properties: { name: { type: 'string' } } };
  const inputRequests = { who: { method: 'elicitation/create', params: { message: 'Who?', requestedSchema } } };
  const asked: unknown[] = [];
  const result = await call(
    mcp,
    '__research',
    {},
    {
      onOutput: () => server.brain.setTasks({ status: 'input_required', inputRequests }),
      async elicit(question) {
        asked.push(question);
        return { action: 'accept', content: { name: 'Ann' } };
      },
    },
  );
  t.match(result, { isError: false, text: /"who":\{"action":"accept","content":\{"name":"Ann"\}\}/ });
  t.equal(asked.length, 1);
});

t.test('2026: an interrupted call cancels its task, unless the turn continues in another process', async (t) => {
  const { server, mcp } = await researcher(t);
  for (const [isLeft, status] of [
    [false, 'cancelled'],
    [true, 'working'],
  ] as const) {
    const controller = new AbortController();
    const running = call(
      mcp,
      '__research',
      {},
      {
        signal: controller.signal,
        remote: remoteWork(undefined, isLeft),
        onOutput: () => controller.abort(new Error('the turn was interrupted')),
      },
    );
    await t.rejects(running, { message: 'the turn was interrupted' });
    const task = () => [...server.brain.tasks.values()].at(-1);
    // A cancellation of the second task would precede the answer to this call.
    if (isLeft) await call(mcp, '__say', { text: 'hello' });
    await until(`the task is ${status}`, () => task()?.status === status);
  }
});

t.test('2026: a task survives its connection and the agent server, and is lost with its MCP server', async (t) => {
  const { server, mcp } = await researcher(t);
  const remote = remoteWork();
  const { port } = server;
  let isBack = false;
  const result = await call(
    mcp,
    '__research',
    {},
    {
      remote,
      onOutput() {
        // The first poll of a connection reports the state of the task.
        if (isBack) server.brain.setTasks(found('after all'));
        else
          void server
            .stop()
            .then(() => reached(mcp, 'small', ({ startupState }) => startupState === 'restarting'))
            .then(async () => {
              isBack = true;
              await server.listen(port);
            });
      },
    },
  );
  t.same(result, { text: 'after all', isError: false });
  const [handle] = remote.saved;
  const next = room(t, { small: http(server.url) });
  next.servers.start();
  await inState(next, 'small', 'ready');
  t.same(await call(next, '__research', {}, { remote: remoteWork(handle) }), { text: 'after all', isError: false });
  t.equal(server.brain.tasks.size, 1, 'the call is not repeated');
  server.brain.tasks.clear();
  t.match(await call(next, '__research', {}, { remote: remoteWork(handle) }), {
    ...{ isError: true, isUnknown: true, text: /is lost \(there is no such task\)\. Whether the call had an effect/ },
  });
});

t.test('2026: the time limit of a call holds for a task on all its connections together', async (t) => {
  const server = await ModernServer.start(t, 0, true);
  const mcp = room(t, { small: http(server.url, { toolTimeoutSec: 2 }) }, { restartPolicy: quick });
  mcp.servers.start();
  await inState(mcp, 'small', 'ready');
  const { port, brain } = server;
  const receive = brain.receive.bind(brain);
  let polls = 0;
  // The server goes away and comes back before each connection has used the limit.
  brain.receive = (message, send) => {
    receive(message, send);
    if (message.method !== 'tasks/get') return;
    polls += 1;
    if (polls % 20 === 0) void server.stop().then(() => server.listen(port));
  };
  t.match(await call(mcp, '__research', {}), {
    isError: true,
    text: /did not answer within 2 s and was cancelled/,
  });
  t.ok(polls > 20, 'the task was polled on several connections');
});

nothingLeft();
