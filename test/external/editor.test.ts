/** An editor connected to Oratorio drives an agent of another maker: over ACP on both sides. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
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
