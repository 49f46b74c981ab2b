/** Tools that run as tasks of their server. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { call, everything, inState, nothingLeft, room, stdio, until } from './helpers.ts';

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

nothingLeft();
