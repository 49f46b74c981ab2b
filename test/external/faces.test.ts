/** The other faces of an agent server whose turns an external agent does. */
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { startAppServer } from '../../src/appserver/index.ts';
import { workspaceStateDirectory } from '../../src/config/index.ts';
import { createLogger } from '../../src/log/index.ts';
import { agentOf, run, say } from '../agui/harness.ts';
import { Client, temporaryDirectory } from '../appserver/harness.ts';
import { items, stubAgent, Talk, textOf } from './talk.ts';

const config = {
  DashBoard: { Enabled: true, Port: 0, Auth: 'none' },
  Api: { Enabled: true, Port: 0, ApiKey: 'sesame' },
  AgUi: { Enabled: true, Port: 0, ApiKey: 'sesame' },
};
const silent = createLogger({ name: 'test', level: 'silent' });
const headers = { authorization: 'Bearer sesame', 'content-type': 'application/json' };

t.test('one external agent answers chat completions, AG-UI and JSON-RPC', async (t) => {
  const { talk, server } = await Talk.begin(t, '', config);
  const summary = async () => {
    const answer = await fetch(new URL('/DashBoard/api/summary', server.endpoints.dashboard));
    return (await answer.json()) as { condition: object; modules: readonly object[] };
  };
  const reported = async () => (await summary()).condition;
  const stub = { kind: 'acp', name: 'stub', approvals: 'none' };
  const limits = [/cannot be steered/, /cannot plan/, /does not ask before it acts/];
  t.match(await talk.client.call('agent/read'), { agent: { ...stub, version: null, state: 'absent' }, limits });
  t.match(await reported(), { model: null, agent: { ...stub, version: null, state: 'absent' } });
  const { modules } = await summary();
  const unused = { name: 'provider', state: 'disabled', reason: 'The agent stub does the turns.' };
  t.match(modules, [unused], 'regression: a provider without turns is not running');
  const api = server.endpoints.api ?? '';
  const complete = async (body: object) => {
    const answer = await fetch(new URL('/v1/chat/completions', api), {
      method: 'POST',
      headers,
      body: JSON.stringify(body),
    });
    return { status: answer.status, body: (await answer.json()) as { choices?: unknown; error?: unknown } };
  };
  const user = (content: string) => ({ role: 'user', content });
  t.match(await complete({ model: 'any', messages: [user('say chat')] }), {
    status: 200,
    body: { choices: [{ message: { content: 'chat' }, finish_reason: 'stop' }] },
  });
  const failed = await complete({ model: 'any', messages: [user('error 400')] });
  t.ok(failed.status >= 500, `a failure is one: ${failed.status}`);
  t.match(failed.body, { error: { message: /no such luck/ } });
  const frontend = agentOf(server.endpoints.agui ?? '', 'x', headers);
  say(frontend, 'say frontend');
  await run(frontend);
  t.equal(frontend.messages.at(-1)?.content, 'frontend');
  t.equal(textOf(await talk.say('say client')), 'client');
  t.match(await reported(), { model: null, agent: { ...stub, version: '1.2.3', state: /ready|busy/ } });
});

t.test('models and commands of the agent are offered, and a thread has it use a model and an effort', async (t) => {
  const { talk, server, path, home } = await Talk.begin(t, 'offers');
  const { client, threadId } = talk;
  t.match(await client.call('model/list'), { success: true, models: [] }, 'nothing before its first turn');
  t.equal(textOf(await talk.say('commands review plan', 'chosen')), 'fast low default');
  t.match(await client.call('model/list'), { models: [{ id: 'fast', ownedBy: 'stub' }, { id: 'deep' }] });
  const { data } = await client.call('command/list');
  const words = { description: 'does review', argumentHint: 'what', agent: 'stub' };
  t.match(data, [{ name: 'review', ...words }, { name: 'plan' }]);
  t.equal(data.length, 2, 'what is no command is left out');
  await client.call('thread/config/update', { threadId, config: { model: 'deep', effort: 'high' } });
  t.equal(textOf(await talk.say('chosen')), 'deep high default');
  await client.call('thread/config/update', { threadId, config: { model: 'unknown', effort: 'xhigh' } });
  const turn = await talk.say('chosen');
  t.match(items(turn, 'systemNotice'), [{ kind: 'agentModelUnknown', text: /unknown and uses deep/ }]);
  t.equal(textOf(turn), 'deep high default');
  t.same(items(await talk.say('chosen'), 'systemNotice'), [], 'said once');

  await server.close();
  const again = async () => {
    const next = await startAppServer({ workspacePath: path, env: { ORATORIO_HOME: home }, logger: silent });
    t.teardown(() => next.close());
    return { next, client: await Client.ready(t, next.webSocketUrl) };
  };
  const restarted = await again();
  const before = { models: [{ id: 'fast' }, { id: 'deep' }] };
  t.match(await restarted.client.call('model/list'), before, 'known after a restart, before its first turn there');
  t.match((await restarted.client.call('command/list')).data, [{ name: 'review', ...words }, { name: 'plan' }]);
  await restarted.next.close();
  writeFileSync(join(workspaceStateDirectory(home, path), 'agent-offers.json'), '{"version":1,"agent":"stub"}');
  t.match(await (await again()).client.call('model/list'), { models: [] }, 'a damaged file is passed over');
});

t.test('a thread puts the agent into a mode in which it asks, and into no other', async (t) => {
  const home = temporaryDirectory(t);
  // A preset knows the modes in which its agent asks.
  const { Command } = stubAgent().Agent;
  const Agent = { Name: 'qwen', Command, Env: { STUB_FLAGS: 'offers', HOME: home } };
  const { talk, path } = await Talk.begin(t, '', { Agent });
  const { client, threadId } = talk;
  const use = (agentMode: string) => client.call('thread/config/update', { threadId, config: { agentMode } });
  t.equal(textOf(await talk.say('chosen')), 'fast low default');
  const { modes } = await client.call('agent/read');
  t.same(modes, [
    { id: 'default', name: 'Default' },
    { id: 'plan', name: 'Plan first' },
  ]);
  await use('plan');
  t.equal(textOf(await talk.say('chosen')), 'fast low plan');
  for (const mode of ['yolo', 'missing']) {
    await use(mode);
    const turn = await talk.say('writefile never');
    t.match(turn, {
      status: 'failed',
      error: { code: 'agentError', message: /modes in which it asks: default, plan/ },
    });
    t.notOk(existsSync(join(path, 'never')));
  }
});

t.test('a cron job has the external agent do its turn, and nothing that needs a person', async (t) => {
  const { talk, path } = await Talk.begin(t, '', { Automations: { Enabled: true } });
  const { client } = talk;
  const schedule = { kind: 'every', everyMs: 3_600_000 };
  const prompt = 'say tick\nrun touch never';
  const { job } = await client.call('cron/add', { name: 'nightly', prompt, schedule, approvalPolicy: 'interrupt' });
  await client.call('cron/run', { jobId: job.id });
  const { params } = await client.until(
    ({ method, params }) => method === 'cron/stateChanged' && params.job.recentRuns[0]?.finishedAt !== undefined,
    'the run ends',
  );
  const [run] = params.job.recentRuns;
  t.match(run, { status: 'completed' });
  const { thread } = await client.call('thread/read', { threadId: run.threadId, includeTurns: true });
  t.equal(textOf(thread.turns[0]), 'tick|refused: x1');
  t.notOk(existsSync(join(path, 'never')));
});
