/** Every message between us and an external agent against the official schema, in both directions. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { logInToAgent } from '../../src/external/index.ts';
import { methodsOf, SchemaCheck } from '../acp-schema.ts';
import { stubAgent, Talk } from './talk.ts';

/** Requests that we do not make of an agent: conversations are listed, closed and deleted here. */
const notMade: ReadonlySet<string> = new Set(['logout', 'session/list', 'session/close', 'session/delete']);

const checkOf = (file: string): SchemaCheck => {
  const check = new SchemaCheck();
  for (const line of readFileSync(file, 'utf8').split('\n')) {
    const [, to, message = ''] = /^(agent|client) (.*)$/.exec(line) ?? [];
    if (to === 'agent' || to === 'client') check.write(to, `${message}\n`);
  }
  return check;
};

t.test('every message of a conversation with an agent is as the official schema says', async (t) => {
  const directory = t.testdir();
  const record = join(directory, 'messages');
  const agentOf = (flags: string) => {
    const { Agent } = stubAgent(flags);
    return { Agent: { ...Agent, Env: { ...Agent.Env, STUB_RECORD: record } } };
  };
  const servers = { notes: { transport: 'stdio', command: process.execPath, args: ['-e', ''], env: { A: 'b' } } };
  for (const flags of ['offers', 'offers resumes']) {
    const { talk, path } = await Talk.begin(t, '', { ...agentOf(flags), McpServers: servers });
    const { client, threadId } = talk;
    writeFileSync(join(path, 'in.txt'), 'one\ntwo\n');
    await client.call('thread/config/update', {
      threadId,
      config: { approvalPolicy: 'autoApprove', model: 'deep', effort: 'high', agentMode: 'plan' },
    });
    await talk.say(
      ...['think hm', 'message m1 a, m2 b', 'plan first', 'run echo hi', 'edit a.txt', 'readfile in.txt 1 1'],
      ...['writefile b.txt', 'terminal echo hi', 'killterminal sleep 100', 'cost 0.5', 'chosen', 'open something'],
    );
    const form = { type: 'object', properties: { name: { type: 'string' } } };
    const asked = await talk.start(
      `elicit ${JSON.stringify({ mode: 'form', message: 'Who?', requestedSchema: form })}`,
    );
    const { params } = await client.until(({ method }) => method === 'question/asked', 'a question');
    await client.call('question/answer', { requestId: params.requestId, action: 'accept', content: { name: 'me' } });
    await talk.end(asked);
    const waiting = await talk.start('say before', 'wait');
    await client.until(
      ({ method, params: about }) => method === 'item/agentMessage/delta' && about.turnId === waiting,
      'text',
    );
    await client.call('turn/interrupt', { threadId, turnId: waiting });
    await talk.end(waiting);
    // The next turn takes the session up in another process.
    await talk.say('exit 1');
    await talk.say('say back');
  }
  await logInToAgent({
    agent: agentOf('login').Agent,
    ...{ env: process.env, passEnvironment: [], cwd: directory, method: undefined },
    signal: new AbortController().signal,
    onBug: (error) => {
      throw error;
    },
  });
  const { problems, seen } = checkOf(record);
  t.strictSame(problems, { agent: [], client: [] });
  const requests = methodsOf('agent').filter((method) => !notMade.has(method));
  const missing = requests.filter(
    (method) => !seen.has(`agent ${method} ${method === 'session/cancel' ? 'Notification' : 'Request'}`),
  );
  t.strictSame(missing, [], 'each request of ours was seen');
  const answers = methodsOf('client').filter(
    (method) => method !== 'session/update' && method !== 'elicitation/complete',
  );
  const unanswered = answers.filter((method) => !seen.has(`client ${method} Response`));
  t.strictSame(unanswered, [], 'each answer of ours was seen');
});
