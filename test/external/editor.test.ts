/** An editor connected to Oratorio drives an external agent: over ACP on both sides. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { McpServer } from '@agentclientprotocol/sdk';
import t from 'tap';
import { choose, inSession, type Permit, surroundings } from '../acp/harness.ts';
import { answers } from '../agent/helpers.ts';
import { stubAgent } from './talk.ts';

t.test('an editor gets the updates and questions of the other agent, and answers them', async (t) => {
  const where = await surroundings(t, answers(), stubAgent());
  const decisions = ['accept', 'decline'];
  const permit: Permit = () => choose(decisions.shift() ?? 'cancel');
  const { prompt, asked, of, said } = await inSession(t, where, { permit });
  const text = [
    'commands review',
    'think hm',
    'say hello',
    'plan first',
    'run touch made',
    'run touch never',
    'cost 0.5',
  ].join('\n');
  t.match(await prompt(text), { stopReason: 'end_turn' });
  t.match(of('agent_thought_chunk'), [{ content: { text: 'hm' } }]);
  t.equal(said(), 'hellorefused: x1', 'a refusal reaches the other agent as its own option');
  t.match(of('plan'), [{ entries: [{ content: 'first', status: 'in_progress' }] }]);
  t.match(asked, [
    { toolCall: { title: 'touch made', kind: 'execute' }, options: [{ optionId: 'accept' }, {}, {}, {}] },
    { toolCall: { title: 'touch never' } },
  ]);
  t.match(
    JSON.stringify(asked[0]?.toolCall),
    /accept is “Once”, decline is “Never”/,
    'in the words of the other agent',
  );
  t.ok(existsSync(join(where.workspace, 'made')));
  t.notOk(existsSync(join(where.workspace, 'never')));
  t.match(
    of('tool_call_update').filter(({ status }) => status === 'completed' || status === 'failed'),
    [{ status: 'completed' }, { status: 'failed' }],
  );
  t.match(of('available_commands_update').at(-1)?.availableCommands.at(-1), {
    ...{ name: 'review', description: 'does review', input: { hint: 'what' } },
  });
  t.match(await prompt('/review this'), { stopReason: 'end_turn' });
  t.match(said(), /reviewed this$/, 'a command of the other agent reaches it');
  t.match(await prompt('say again'), { stopReason: 'end_turn' });
  await t.rejects(prompt('error 400'), /no such luck/, 'a failure of the other agent is one of the prompt');
});

t.test(
  'an editor gets the models, efforts and modes of the other agent after its first turn, and sets them',
  async (t) => {
    const { Command } = stubAgent().Agent;
    // A preset knows the modes in which its agent asks.
    const where = await surroundings(t, answers(), { Agent: { Name: 'qwen', Command, Env: { STUB_FLAGS: 'offers' } } });
    const { agent, sessionId, prompt, of, said } = await inSession(t, where);
    await prompt('chosen');
    t.match(of('config_option_update').at(-1)?.configOptions, [
      { id: 'mode', options: [{ value: 'default' }, { value: 'autoApprove' }, { value: 'interrupt' }] },
      { id: 'model', category: 'model', options: [{ value: 'configured' }, { value: 'fast' }, { value: 'deep' }] },
      { id: 'effort', category: 'thought_level' },
      {
        id: 'agent_mode',
        name: 'Mode of qwen',
        options: [{}, { value: 'default' }, { value: 'plan', name: 'Plan first' }],
      },
    ]);
    const set = (configId: string, value: string) =>
      agent.request('session/set_config_option', { sessionId, configId, value });
    await set('model', 'deep');
    await set('effort', 'high');
    t.match(await set('agent_mode', 'plan'), { configOptions: [{}, {}, {}, { currentValue: 'plan' }] });
    await prompt('chosen');
    t.equal(said(), 'fast low defaultdeep high plan');
    await t.rejects(set('agent_mode', 'yolo'), { code: -32_602 }, 'a mode in which it does not ask is not offered');
  },
);

t.test('an editor cancels the prompt of the other agent, also while it is asked', async (t) => {
  const where = await surroundings(t, answers(), stubAgent());
  const asking = Promise.withResolvers<void>();
  const permit: Permit = () => {
    asking.resolve();
    return new Promise(() => {});
  };
  const { agent, sessionId, prompt, said } = await inSession(t, where, { permit });
  const pending = prompt('run touch never');
  await asking.promise;
  await agent.notify('session/cancel', { sessionId });
  t.match(await pending, { stopReason: 'cancelled' });
  t.match(await prompt('say after'), { stopReason: 'end_turn' });
  t.match(said(), /after$/);
  t.notOk(existsSync(join(where.workspace, 'never')));
});

t.test('MCP servers of an editor are handed on to the other agent when the user has allowed them', async (t) => {
  const mcpServers: McpServer[] = [
    { name: 'notes', command: process.execPath, args: ['notes.js'], env: [{ name: 'A', value: 'b' }] },
    { name: 'never', command: '/bin/false', args: [], env: [] },
    { type: 'http', name: 'web', url: 'https://example.com/mcp', headers: [{ name: 'X-Key', value: 'k' }] },
  ];
  for (const [flags, names] of [
    ['', ['notes']],
    ['http', ['notes', 'web']],
  ] as const) {
    const where = await surroundings(t, answers(), stubAgent(flags));
    const permit: Permit = ({ toolCall }) => choose(/never/.test(toolCall.title ?? '') ? 'decline' : 'accept');
    const { prompt, said, of } = await inSession(t, where, { permit, mcpServers });
    await prompt('servers');
    const given: McpServer[] = JSON.parse(said());
    t.strictSame(
      given,
      mcpServers.filter(({ name }) => names.some((each) => each === name)),
    );
    t.match(JSON.stringify(of('tool_call_update')), /Handed on to the agent/);
  }
});
