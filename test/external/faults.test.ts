/** A misbehaving agent: each fault leads to the end and the state that docs/external-agent-faults.md names. */
import { readFileSync } from 'node:fs';
import t, { type Test } from 'tap';
import { scripted } from '../agent/helpers.ts';
import { eventually, type Message, startServer } from '../appserver/harness.ts';
import { items, stubAgent, Talk, textOf } from './talk.ts';

interface Fault {
  /** Name of the fault in the document. */
  readonly name: string;
  /** Words for the stub. */
  readonly does: readonly string[];
  readonly ends: 'completed' | 'cancelled' | 'agentError' | 'agentExited' | 'answerTooLong';
  /** Text of the message of the agent, or of the error. */
  readonly says: RegExp;
  readonly shows?: (t: Test, turn: Message) => void;
}

/** Faults that happen one after the other in one thread; each is followed by a turn that must succeed. */
const faults: readonly Fault[] = [
  { name: 'noise and escape codes', does: ['noise', 'say a'], ends: 'completed', says: /^a$/ },
  { name: 'half a line', does: ['half', 'say b'], ends: 'completed', says: /^b$/ },
  { name: 'unknown update', does: ['unknown new_kind', 'say c'], ends: 'completed', says: /^c$/ },
  { name: 'malformed updates', does: ['malformed'], ends: 'completed', says: /^refused -32602$/ },
  { name: 'unknown request', does: ['ext'], ends: 'completed', says: /^ext -32601$/ },
  { name: 'foreign ids', does: ['foreign', 'say d'], ends: 'completed', says: /^d$/ },
  {
    name: 'one call ended three times',
    does: ['same work', 'say e'],
    ends: 'completed',
    says: /^e$/,
    shows: (t, turn) => t.match(items(turn, 'toolResult'), [{ outcome: 'completed' }]),
  },
  {
    name: 'call without an end',
    does: ['open work', 'say f'],
    ends: 'completed',
    says: /^f$/,
    shows: (t, turn) => t.match(items(turn, 'toolResult'), [{ outcome: 'cancelled' }]),
  },
  {
    name: 'prompt answered twice',
    does: ['say g', 'twice'],
    ends: 'completed',
    says: /^g$/,
    shows: (t, turn) => t.equal(turn.finishReason, 'length', 'the first answer counts'),
  },
  { name: 'unknown stop reason', does: ['say h', 'stop because'], ends: 'completed', says: /^h$/ },
  { name: 'cancelled by itself', does: ['stop cancelled'], ends: 'cancelled', says: /^$/ },
  { name: 'lost session', does: ['forget', 'say i'], ends: 'completed', says: /^i$/ },
  { name: 'error 400', does: ['error 400'], ends: 'agentError', says: /no such luck/ },
  { name: 'error 1001', does: ['error 1001'], ends: 'agentError', says: /no such luck/ },
  { name: 'error -32603', does: ['error -32603'], ends: 'agentError', says: /no such luck/ },
  { name: 'death in a turn', does: ['say j', 'exit 7'], ends: 'agentExited', says: /has ended/ },
  { name: 'text without an end', does: ['pour text'], ends: 'answerTooLong', says: /more than 2097152 bytes of text/ },
  {
    name: 'calls without an end',
    does: ['pour calls'],
    ends: 'answerTooLong',
    says: /more than 512 calls without an end/,
  },
  { name: 'line over 16 MiB', does: ['flood'], ends: 'agentExited', says: /has ended/ },
  { name: 'closed output', does: ['say k', 'deaf'], ends: 'agentExited', says: /has ended/ },
];

/** The server of all tests that need none of their own; each has a thread of its own. */
const { server } = await Talk.begin(t);

t.test('every fault in a turn leads to its documented end, and the next turn works', async (t) => {
  const talk = await Talk.join(t, server);
  for (const { name, does, ends, says, shows } of faults) {
    const turn = await talk.say(...does);
    t.equal(turn.error?.code ?? turn.status, ends, name);
    t.match(turn.error?.message ?? textOf(turn), says, name);
    shows?.(t, turn);
    t.equal(textOf(await talk.say('say well')), 'well', `the turn after: ${name}`);
  }
});

t.test('a conversation with a model continues while an agent sends without an end', async (t) => {
  const provider = scripted(async function* () {
    yield { type: 'text', text: 'here' };
  });
  const { server } = await startServer(t, provider, { config: stubAgent() });
  const flooding = await Talk.join(t, server);
  const witness = await Talk.join(t, server);
  witness.threadId = (await witness.client.call('thread/start', { config: { agent: 'oratorio' } })).thread.id;
  const flood = await flooding.start('say begun', 'pour other');
  await flooding.client.until(({ method }) => method === 'item/agentMessage/delta', 'the flood begins');
  for (let turn = 0; turn < 3; turn += 1) t.match(await witness.say('go'), { status: 'completed' });
  const { thread } = await flooding.client.call('thread/read', { threadId: flooding.threadId, includeTurns: true });
  t.match(thread.turns.at(-1), { id: flood, status: 'running' }, 'the agent still sends');
  await flooding.client.call('turn/interrupt', { threadId: flooding.threadId, turnId: flood });
  t.match(await flooding.end(flood), { status: 'cancelled' });
});

t.test('an option that would last for good is never chosen', async (t) => {
  const talk = await Talk.join(t, server);
  const turn = await talk.start('always it');
  await talk.decide(turn, 'acceptAlways');
  t.equal(textOf(await talk.end(turn)), '{"outcome":"cancelled"}');
});

t.test('a turn whose limits an agent cannot keep is refused before the agent starts', async (t) => {
  const { talk } = await Talk.begin(t);
  const { client, threadId } = talk;
  const input = [{ type: 'text', text: 'say x' }];
  const planned = (await client.call('turn/start', { threadId, input, mode: 'plan' })).turn.id;
  t.match((await talk.end(planned)).error, { code: 'agentUnsuited', message: /only plans/ });
  talk.threadId = (await client.call('thread/start', { config: { readOnly: true } })).thread.id;
  t.match((await talk.say('say x')).error, { code: 'agentUnsuited', message: /read-only/ });
});

t.test('an external agent is not steered', async (t) => {
  const talk = await Talk.join(t, server);
  const turnId = await talk.start('say a', 'wait');
  await talk.client.until(({ method }) => method === 'item/agentMessage/delta', 'text');
  const steering = talk.client.call('turn/steer', {
    threadId: talk.threadId,
    expectedTurnId: turnId,
    input: [{ type: 'text', text: 'left' }],
  });
  await t.rejects(steering, { message: /cannot be steered/ });
  await talk.client.call('turn/interrupt', { threadId: talk.threadId, turnId });
  await talk.end(turnId);
});

t.test('sessions get the MCP servers of the configuration', async (t) => {
  const McpServers = { tools: { transport: 'stdio', command: 'true', args: ['--x'], env: { A: 'b' } } };
  const { talk } = await Talk.begin(t, '', { McpServers });
  const [given] = JSON.parse(textOf(await talk.say('servers')));
  t.same(given, { name: 'tools', command: 'true', args: ['--x'], env: [{ name: 'A', value: 'b' }] });
});

t.test('the document names every fault', (t) => {
  const document = readFileSync(new URL('../../docs/external-agent-faults.md', import.meta.url), 'utf8');
  for (const { name, ends } of faults) t.match(document, new RegExp(`^\\| ${name} \\|.*${ends}`, 'm'), name);
  t.end();
});

t.test('an automation whose prompt an agent has got is not repeated after the end of the agent', async (t) => {
  const talk = await Talk.join(t, server);
  const { task } = await talk.client.call('automation/task/create', { prompt: 'exit 7' });
  const { automation } = await eventually(async () => {
    const read = await talk.client.call('automation/read', { automationId: task.id });
    return ['finished', 'backingOff'].includes(read.automation.state) ? read : undefined;
  }, 'the run has ended');
  t.match(automation, {
    state: 'finished',
    recentRuns: [{ status: 'failed', error: { code: 'agentExited', message: /because stub had begun/ } }],
  });
});
