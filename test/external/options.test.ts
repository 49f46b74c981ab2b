/** Messages with ids, further options and directories of an external agent. */
import type { SetSessionConfigOptionRequest } from '@agentclientprotocol/sdk';
import t from 'tap';
import { inSession, surroundings } from '../acp/harness.ts';
import { answers } from '../agent/helpers.ts';
import { items, stubAgent, Talk, textOf } from './talk.ts';

t.test('another messageId begins another message; pieces without one continue it', async (t) => {
  const { talk } = await Talk.begin(t);
  const turn = await talk.say('message m1 one, m1 -two, m2 three', 'say -four', 'message m2 -five');
  t.equal(textOf(turn), 'one-two|three-four-five');
  t.equal(textOf(await talk.say('say a', 'say b')), 'ab', 'an agent without ids has one message');
});

t.test('further options of an agent are offered with plain words, and set for a thread', async (t) => {
  const { talk } = await Talk.begin(t, 'offers options');
  const { client, threadId } = talk;
  t.equal(textOf(await talk.say('options')), 'web false, depth short');
  const { options } = await client.call('agent/read');
  t.strictSame(options, [
    { id: 'w', value: false, name: 'Web search', category: 'model_config' },
    {
      ...{ id: 'd', value: 'short', name: 'Depth', category: 'model_config' },
      values: [
        { id: 'short', name: 'short' },
        { id: 'long', name: 'long' },
      ],
    },
    { id: 'a', value: true, name: 'Ask' },
  ]);
  const agentOptions = { w: true, d: 'long', none: 'x' };
  await client.call('thread/config/update', { threadId, config: { agentOptions } });
  t.equal(textOf(await talk.say('options')), 'web true, depth long', 'one that is not offered changes nothing');
  await client.call('thread/config/update', { threadId, config: { agentOptions: { d: 'deepest', w: 'on' } } });
  const turn = await talk.say('options');
  t.equal(textOf(turn), 'web true, depth long', 'a value that is not offered changes nothing');
});

t.test('a preset that asks offers options of its model only', async (t) => {
  const { Command } = stubAgent().Agent;
  const Agent = { Name: 'qwen', Command, Env: { STUB_FLAGS: 'offers options' } };
  const { talk } = await Talk.begin(t, '', { Agent });
  await talk.say('say hi');
  t.match(await talk.client.call('agent/read'), { options: [{ id: 'w' }, { id: 'd' }] });
  const config = { agentOptions: { a: false } };
  await talk.client.call('thread/config/update', { threadId: talk.threadId, config });
  t.equal(textOf(await talk.say('asks')), 'asks true', 'no option switches its questions off');
  t.same(items(await talk.say('say on'), 'error'), []);
});

t.test('an editor shows switches of the agent, as selections where it knows none', async (t) => {
  const where = await surroundings(t, answers(), stubAgent('offers options'));
  const capabilities = { session: { configOptions: { boolean: {} } } };
  const editor = await inSession(t, where, { capabilities });
  const { agent, sessionId } = editor;
  await editor.prompt('say hi');
  const shown = editor.of('config_option_update').at(-1)?.configOptions ?? [];
  t.match(
    shown.find(({ id }) => id === 'agent_option_w'),
    { type: 'boolean', currentValue: false, category: 'model_config', name: 'Web search' },
  );
  const set: SetSessionConfigOptionRequest = { sessionId, configId: 'agent_option_w', type: 'boolean', value: true };
  const { configOptions } = await agent.request('session/set_config_option', set);
  t.match(
    configOptions.find(({ id }) => id === 'agent_option_w'),
    { currentValue: true },
  );
  await editor.prompt('options');
  t.match(editor.said(), /web true, depth short$/);

  const plain = await inSession(t, where);
  const select = (configId: string, value: string) =>
    plain.agent.request('session/set_config_option', { sessionId: plain.sessionId, configId, value });
  const off = await select('agent_option_w', 'false');
  t.match(
    off.configOptions.find(({ id }) => id === 'agent_option_w'),
    { type: 'select', currentValue: 'false', options: [{ value: 'true', name: 'On' }, { value: 'false' }] },
  );
  await select('agent_option_d', 'long');
  await plain.prompt('options');
  t.match(plain.said(), /web false, depth long$/);
  await t.rejects(select('agent_option_d', 'deepest'), { code: -32_602 });
  await t.rejects(select('agent_option_none', 'x'), { code: -32_602 });
  await t.rejects(select('agent_option_w', 'perhaps'), { code: -32_602 });
});

t.test('further directories of a thread reach an agent that takes them', async (t) => {
  const directory = t.testdir();
  const config = { additionalDirectories: [directory, '/etc', 'relative'] };
  for (const [flags, given] of [
    ['directories', JSON.stringify([directory])],
    ['', 'null'],
  ] as const) {
    const { talk } = await Talk.begin(t, flags);
    talk.threadId = (await talk.client.call('thread/start', { config })).thread.id;
    t.equal(textOf(await talk.say('directories')), given);
  }
});
