/** Our own agent gives tasks to external agents, and a thread names the agent that does its turns. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { DelegatedAgents } from '../../src/appserver/delegated-agents.ts';
import { answers, service, talk as talkTo } from '../agent/helpers.ts';
import { eventually, type Message } from '../appserver/harness.ts';
import { items, stubAgent, Talk, textOf } from './talk.ts';

/** The stub is there for tasks; our own agent does the turns. */
const config = { Agent: { ...stubAgent().Agent, Kind: 'oratorio' } };

const spawn = (task: string, more: object = {}) =>
  `call SpawnSubagent ${JSON.stringify({ task, agent: 'stub', ...more })}`;

/** Answers the next question of the thread, whichever of its turns asks. */
async function answer({ client }: Talk, approvalType: string, decision: string): Promise<Message> {
  const { params } = await client.until(
    ({ method, params }) => method === 'item/approval/request' && params.approvalType === approvalType,
    `a question about ${approvalType}`,
  );
  await client.call('approval/respond', { requestId: params.requestId, decision });
  return params;
}

t.test('a task goes to another agent once the user agrees, and its questions reach the asking thread', async (t) => {
  const { talk, path } = await Talk.begin(t, '', config);
  const turn = await talk.start(spawn('run touch made\nsay done'));
  t.match(await answer(talk, 'remoteResource', 'acceptForSession'), {
    operation: 'delegate',
    target: 'stub',
    covers: 'tasks for stub in this workspace',
  });
  t.match(await answer(talk, 'shell', 'accept'), { target: 'touch made' });
  const ended = await talk.end(turn);
  t.match(items(ended, 'toolResult'), [{ tool: 'SpawnSubagent', outcome: 'completed', text: /done/ }]);
  t.ok(existsSync(join(path, 'made')));
  const { data } = await talk.client.call('thread/list', {});
  t.equal(data.length, 1, 'the thread of a sub-agent belongs to its parent');

  const again = await talk.say(spawn('say without a question\npid'));
  t.match(items(again, 'toolResult'), [{ outcome: 'completed', text: /without a question/ }]);
  const [, pid] = /pid (\d+)/.exec(items(again, 'toolResult')[0].text) ?? [];
  t.ok(pid, 'the process of the agent is known');
  await eventually(() => (existsSync(`/proc/${pid}`) ? undefined : true), 'its process ends with its last thread');
  const failed = await talk.say(spawn('error 400'));
  t.match(items(failed, 'toolResult'), [{ outcome: 'failed', text: /ended early: stub reports: no such luck/ }]);
  const typed = await talk.say(spawn('say x', { type: 'explore' }));
  t.match(items(typed, 'toolResult'), [{ outcome: 'failed', text: /stub knows no type explore/ }]);
  const unknown = await talk.say(spawn('say x', { agent: 'missing' }));
  t.match(items(unknown, 'toolResult'), [{ outcome: 'failed', text: /agent must be one of stub/ }]);
});

t.test('a task that is declined starts no agent, and an interrupt ends the other agent too', async (t) => {
  const { talk } = await Talk.begin(t, '', config);
  const declined = await talk.start(spawn('say x'));
  await answer(talk, 'remoteResource', 'decline');
  t.match(items(await talk.end(declined), 'toolResult'), [{ outcome: 'declined' }]);
  const waiting = await talk.start(spawn('run touch never'));
  await talk.decide(waiting, 'accept');
  await talk.client.until(
    ({ method, params }) => method === 'item/approval/request' && params.approvalType === 'shell',
    'the other agent asks',
  );
  await talk.client.call('turn/interrupt', { threadId: talk.threadId, turnId: waiting });
  t.match(await talk.end(waiting), { status: 'cancelled' });
  t.match(await talk.client.call('approval/list', {}), { data: [] });
});

t.test('a thread names its agent when it starts, and keeps it', async (t) => {
  const { talk } = await Talk.begin(t, '', config);
  const { client } = talk;
  const own = talk.threadId;
  talk.threadId = (await client.call('thread/start', { config: { agent: 'stub' } })).thread.id;
  t.equal(textOf(await talk.say('say by the stub')), 'by the stub');
  const { threadId } = talk;
  for (const [id, agent] of [
    [threadId, 'codex'],
    [own, 'stub'],
  ]) {
    const change = client.call('thread/config/update', { threadId: id, config: { agent } });
    await t.rejects(change, { message: /its agent.*is decided when it starts/ });
  }
  talk.threadId = (await client.call('thread/start', { config: { agent: 'missing' } })).thread.id;
  t.match((await talk.say('say x')).error, { code: 'agentUnavailable', message: /There is no agent missing/ });
});

t.test('a thread of our own agent works where another one does the turns, and so do its sub-agents', async (t) => {
  const { talk } = await Talk.begin(t, '', { Provider: 'demo' });
  t.match(textOf(await talk.say('pid')), /^pid \d+$/, 'the other agent does the turns of the workspace');
  talk.threadId = (await talk.client.call('thread/start', { config: { agent: 'oratorio' } })).thread.id;
  const turn = await talk.say('call SpawnSubagent {"task":"pid"}');
  const [result] = items(turn, 'toolResult');
  t.match(result, { tool: 'SpawnSubagent', outcome: 'completed' });
  t.notMatch(result.text, /pid \d/);
});

t.test('our own agent makes nothing up where no model is set and another agent does the turns', async (t) => {
  const { talk } = await Talk.begin(t);
  talk.threadId = (await talk.client.call('thread/start', { config: { agent: 'oratorio' } })).thread.id;
  t.match(await talk.say('call FindFiles {}'), {
    status: 'failed',
    error: { code: 'upstreamUnauthorized', message: /oratorio has no model in this workspace: set EndPoint/ },
  });
});

t.test(
  'a fork to another agent names the items that it has not seen; a fork to an unusable agent copies nothing',
  async (t) => {
    const { talk } = await Talk.begin(t, '', config);
    const { client, threadId } = talk;
    const [own, stub] = (await client.call('agent/read')).agents;
    t.match([own, stub], [{ name: 'oratorio' }, { name: 'stub', isInstalled: true, approvals: 'none' }]);
    const use = { model: 'ours', agentMode: 'plan' };
    await client.call('thread/config/update', { threadId, config: use });
    t.match(await talk.say('hello'), { status: 'completed' });
    const fork = async (agent: string) => {
      talk.threadId = (await client.call('thread/fork', { threadId: talk.threadId, agent })).thread.id;
    };
    await fork('stub');
    const { thread } = await client.call('thread/read', { threadId: talk.threadId });
    t.match(thread, { config: { agent: 'stub', model: undefined, agentMode: undefined }, model: undefined });
    const turn = await talk.say('say by the stub');
    t.equal(textOf(turn), 'by the stub');
    t.match(items(turn, 'systemNotice'), [{ kind: 'agentHasNotSeen', text: /^stub has not seen the earlier turns/ }]);
    t.same(items(await talk.say('say again'), 'systemNotice'), [], 'said once');
    await fork('oratorio');
    t.not(textOf(await talk.say('hello')), '', 'our own again');
    const before = (await client.call('thread/list', {})).data.length;
    for (const agent of ['missing', '$(touch owned)', '../stub', 'x'.repeat(10_000), 'a\u001b[31m']) {
      const { error } = await client.ask('thread/fork', { threadId, agent, worktree: true });
      t.match(error, { code: -32_086, data: { reason: 'unknown' } });
      t.ok(JSON.stringify(error).length < 600 && !/u001b/.test(JSON.stringify(error)), 'a long or odd name is cut');
    }
    t.equal((await client.call('thread/list', {})).data.length, before, 'nothing was copied');
  },
);

t.test('an agent whose program is missing, and one without a name, are refused before a start', (t) => {
  const configured = { Kind: 'oratorio', Name: 'mine', Command: ['/missing/program'], Env: {} } as const;
  const common = { env: { PATH: '' } } as never;
  const agents = new DelegatedAgents({ main: undefined, configured, common, observe: () => undefined });
  t.same(
    ['oratorio', 'mine', 'codex', '', 'constructor'].map((name) => agents.problemOf(name)),
    [undefined, 'notInstalled', 'notInstalled', 'unknown', 'unknown'],
  );
  t.same(agents.choices(false), [{ name: 'oratorio', isInstalled: true, approvals: 'asks' }]);
  t.match(agents.choices(true).slice(0, 2), [{ isInstalled: true }, { name: 'mine', isInstalled: false }]);
  t.end();
});

t.test('no other agent works in a workspace that is not trusted', async (t) => {
  const { runtime } = service(answers());
  const original = runtime.threads.start({}).thread.id;
  const refused = runtime.files.fork(original, { worktree: false, agent: 'codex' });
  await t.rejects(refused, Object.assign(new Error(), { reason: 'agentUnavailable', data: { reason: 'restricted' } }));
  const { thread } = runtime.threads.start({ config: { agent: 'codex' } });
  const { turn } = await talkTo(runtime, thread.id, 'Look.');
  t.match(turn, { status: 'failed', error: { code: 'agentUnavailable', message: /trust this workspace first/ } });
});
