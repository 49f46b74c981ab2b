/** An AG-UI run whose agent server is killed: the next run of the same thread joins the turn that continues. */
import { HttpAgent } from '@ag-ui/client';
import t, { type Test } from 'tap';
import { unusedPort } from '../ports.ts';
import { eventually } from './harness.ts';
import { killable } from './killable.ts';

const runId = 'the run';

async function place(t: Test, kills: number) {
  const port = await unusedPort();
  const AgUi = { Enabled: true, Host: '127.0.0.1', Port: port, Path: '/ag-ui', ApiKey: 'sesame' };
  const scene = await killable(t, kills, { AgUi, Permissions: { DefaultApprovalPolicy: 'autoApprove' } });
  const agentOf = () => {
    const headers = { authorization: 'Bearer sesame' };
    const agent = new HttpAgent({ url: `http://127.0.0.1:${port}/ag-ui`, threadId: 'a thread', headers });
    agent.addMessage({ id: 'user-0', role: 'user', content: 'work' });
    return agent;
  };
  return { ...scene, agentOf };
}

const answerOf = ({ messages }: HttpAgent) =>
  messages.flatMap((message) => (message.role === 'assistant' && message.content ? [message.content] : []));

/** Sends the run of an agent and kills the server in the answer. @returns the message that the client has of it */
async function killedRun(t: Test, agent: HttpAgent, kill: () => Promise<void>, tools: readonly object[] = []) {
  const { url, headers, threadId, messages } = agent;
  const input = { threadId, runId, messages, tools, context: [], state: {}, forwardedProps: {} };
  const response = await fetch(url, {
    ...{ method: 'POST', body: JSON.stringify(input) },
    headers: { ...headers, 'content-type': 'application/json', accept: 'text/event-stream' },
  });
  let text = '';
  const read = (async () => {
    for await (const piece of response.body ?? []) text += new TextDecoder().decode(piece);
  })();
  const broken = t.rejects(read, 'the killed server ends no run');
  const [, id = '', content = ''] = await eventually(
    () => /"messageId":"([^"]*)","delta":"([^"]*)"/.exec(text) ?? undefined,
    'half an answer',
  );
  await kill();
  await broken;
  return { id, role: 'assistant' as const, content };
}

t.test('after a kill the same run joins its turn, which runs no command again', async (t) => {
  const { start, agentOf, asked, effects } = await place(t, 1);
  const agent = agentOf();
  const first = await start();
  agent.addMessage(await killedRun(t, agent, first.kill));
  await start();
  const ends: unknown[] = [];
  await agent.runAgent({ runId }, { onRunFinishedEvent: ({ event }) => void ends.push(event) });
  t.match(ends, [{ runId, outcome: { type: 'success' } }]);
  t.strictSame(answerOf(agent), ['the whole answer']);
  t.equal(effects(), 'once\n');
  t.equal(asked(), 3, 'the call, the broken answer and its repetition');
});

t.test('a run that is repeated after the end of its turn gets the answer', async (t) => {
  const { start, agentOf, asked, effects } = await place(t, 1);
  const first = await start();
  await killedRun(t, agentOf(), first.kill);
  await start();
  await eventually(() => asked() === 3 || undefined, 'the answer is repeated');
  const agent = agentOf();
  await agent.runAgent({ runId });
  t.strictSame(answerOf(agent), ['the whole answer']);
  t.equal(effects(), 'once\n');
  const again = agentOf();
  await again.runAgent({ runId });
  t.strictSame(answerOf(again), ['the whole answer']);
  t.equal(asked(), 3);
});

t.test('after a kill, a run that calls a client tool still ends with the call', async (t) => {
  const { start, agentOf, effects } = await place(t, 1);
  const tools = [{ name: 'mine', description: 'Mine.', parameters: { type: 'object', properties: {} } }];
  const agent = agentOf();
  const first = await start();
  agent.addMessage(await killedRun(t, agent, first.kill, tools));
  await start();
  await agent.runAgent({ runId, tools });
  const calls = agent.messages.flatMap((message) => (message.role === 'assistant' ? (message.toolCalls ?? []) : []));
  t.match(
    calls.filter(({ function: { name } }) => name === 'mine'),
    [{ id: 'call_mine' }],
  );
  t.equal(effects(), 'once\n');
});
