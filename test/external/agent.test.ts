/** An external agent does the turns of a workspace: over the real server and a real process. */
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { temporaryDirectory } from '../appserver/harness.ts';
import { items, stubAgent, Talk, textOf } from './talk.ts';

/** The server of all tests that need none of their own; each has a thread of its own. */
const { server, path } = await Talk.begin(t);

t.test('updates of an agent become items of the turn', async (t) => {
  const talk = await Talk.join(t, server);
  const turn = await talk.say(
    'think hm',
    'say hello',
    'plan first',
    'say bye',
    'noise',
    'unknown new_kind',
    'ext',
    'cost 0.25',
  );
  t.equal(turn.status, 'completed');
  t.match(items(turn, 'reasoningContent'), [{ text: 'hm' }]);
  t.equal(textOf(turn), 'hello|byeext -32601', 'its greeting before the turn is no part of it');
  t.match(items(turn, 'plan'), [{ steps: [{ step: 'first', status: 'in_progress' }] }]);
  t.match(turn.tokenUsage, { inputTokens: 100, outputTokens: 10, costUsd: 0.25 });
  const next = await talk.say('say again', 'open something', 'stop max_tokens');
  t.match(next, { status: 'completed', finishReason: 'length', tokenUsage: { inputTokens: 100, outputTokens: 10 } });
  t.match(items(next, 'toolResult'), [{ outcome: 'cancelled' }], 'a call without an end is over with the turn');
});

t.test('a call runs only after a person has allowed it', async (t) => {
  const talk = await Talk.join(t, server);
  const first = await talk.start('run touch made && echo done');
  const request = await talk.decide(first, 'accept');
  t.match(request, { approvalType: 'shell', target: 'touch made && echo done' });
  t.match(request.reason, /^stub asks. In its words accept is “Once”, decline is “Never”./);
  const turn = await talk.end(first);
  t.ok(existsSync(join(path, 'made')));
  t.match(items(turn, 'toolCall'), [{ tool: 'Exec', source: 'agent' }]);
  t.match(items(turn, 'commandExecution'), [
    { command: 'touch made && echo done', output: 'done\n', outcome: 'completed' },
  ]);
  const second = await talk.start('run touch other');
  await talk.decide(second, 'decline');
  const declined = await talk.end(second);
  t.equal(textOf(declined), 'refused: x1');
  t.notOk(existsSync(join(path, 'other')));
  t.match(items(declined, 'toolResult'), [{ outcome: 'declined' }]);
  const third = await talk.start('edit note.txt');
  t.match(await talk.decide(third, 'acceptForSession'), { approvalType: 'file', target: join(path, 'note.txt') });
  await talk.end(third);
  t.equal(readFileSync(join(path, 'note.txt'), 'utf8'), 'written by the agent\n');
  const edited = await talk.say('edit note.txt');
  t.match(items(edited, 'approvalRequest'), [], 'a grant is remembered here');
  const diff = await talk.client.call('turn/diff', { threadId: talk.threadId, turnId: third, format: 'unified' });
  t.match(JSON.stringify(diff), /note\.txt/, 'its turns have checkpoints');
});

t.test('an interrupted turn answers the questions of the agent, and the next one works', async (t) => {
  const talk = await Talk.join(t, server);
  const asked = await talk.start('run sleep 100');
  await talk.client.until(({ method }) => method === 'item/approval/request', 'a question');
  await talk.client.call('turn/interrupt', { threadId: talk.threadId, turnId: asked });
  t.match(await talk.end(asked), { status: 'cancelled', interruptedBy: 'user' });
  const waiting = await talk.start('say before', 'wait');
  await talk.client.until(
    ({ method, params }) => method === 'item/agentMessage/delta' && params.turnId === waiting,
    'text',
  );
  await talk.client.call('turn/interrupt', { threadId: talk.threadId, turnId: waiting });
  t.match(await talk.end(waiting), { status: 'cancelled', items: [{}, { text: 'before' }] });
  t.equal(textOf(await talk.say('say after')), 'after');
});

t.test('the failures of an agent are failures of the turn, in words', async (t) => {
  const talk = await Talk.join(t, server);
  t.match(await talk.say('error 400'), {
    status: 'failed',
    error: { code: 'agentError', message: 'stub reports: no such luck' },
  });
  t.match(await talk.say('say x', 'exit 7'), { status: 'failed', error: { code: 'agentExited' } });
  t.equal(textOf(await talk.say('say back')), 'back', 'it is started again, and its replay is dropped');
  t.match(await talk.say('flood'), { status: 'failed', error: { code: 'agentExited' } });
  const cancelled = await talk.say('stop cancelled');
  t.match(cancelled, { status: 'cancelled', interruptedBy: 'approval' });
});

t.test('an agent that wants a log-in, is broken or missing says what to do', async (t) => {
  const login = await Talk.begin(t, 'login');
  t.match(await login.talk.say('say x'), {
    status: 'failed',
    error: { code: 'agentLoginRequired', message: /log in/ },
  });
  const version = await Talk.begin(t, 'v99');
  t.match(await version.talk.say('say x'), {
    status: 'failed',
    error: { code: 'agentUnavailable', message: /version 99/ },
  });
});

t.test('regression: a missing program of an agent is named, with the earlier PATH of the Hub as a cause', async (t) => {
  const Agent = { Name: 'opencode', Command: ['no-such-agent'], Env: {} };
  const { talk } = await Talk.begin(t, '', { Agent });
  const message = /no such program[\s\S]*Install it with: npm install -g [\s\S]*earlier PATH: oratorio hub stop/;
  t.match(await talk.say('say x'), { status: 'failed', error: { code: 'agentUnavailable', message } });
});

t.test('a turn starts an agent once, also one that ends while the files are saved', async (t) => {
  const starts = join(temporaryDirectory(t), 'starts');
  const Command = ['/bin/sh', '-c', 'echo start >> "$0"; exit 3', starts];
  const Supervision = { Restart: 'never' };
  const { talk } = await Talk.begin(t, '', { Agent: { Name: 'broken', Command }, Supervision });
  for (const expected of ['start\n', 'start\nstart\n']) {
    t.match(await talk.say('say x'), { status: 'failed', error: { code: 'agentUnavailable' } });
    t.equal(readFileSync(starts, 'utf8'), expected);
  }
});

t.test('an agent does no turn on a model of its maker that the user has not chosen', async (t) => {
  const home = temporaryDirectory(t);
  const begin = (flags: string, more: Readonly<Record<string, string>> = {}) => {
    const { Command } = stubAgent().Agent;
    return Talk.begin(t, '', { Agent: { Name: 'opencode', Command, Env: { STUB_FLAGS: flags, HOME: home, ...more } } });
  };
  const { talk } = await begin('hosted');
  const refused = await talk.say('say x');
  t.match(refused, { status: 'failed', error: { code: 'agentLoginRequired', message: /opencode auth login/ } });
  t.equal(textOf(refused), '');
  t.equal(textOf(await (await begin('provided')).talk.say('say x')), 'x', 'a provider of the user');
  t.equal(textOf(await (await begin('hosted', { OPENCODE_API_KEY: 'k' })).talk.say('say x')), 'x', 'a key of the user');
  mkdirSync(join(home, '.local/share/opencode'), { recursive: true });
  writeFileSync(join(home, '.local/share/opencode/auth.json'), JSON.stringify({ opencode: { type: 'api' } }));
  t.equal(textOf(await talk.say('say x')), 'x', 'after the log-in');
  await talk.say('exit 1');
  rmSync(join(home, '.local'), { recursive: true });
  const resumed = await talk.say('say x');
  t.match(resumed, { status: 'failed', error: { code: 'agentLoginRequired' } }, 'a session from before the log-out');
});

t.test('a new process that has forgotten the session is a notice in the thread', async (t) => {
  const { talk } = await Talk.begin(t, 'forgetful');
  await talk.say('say one', 'exit 1');
  const turn = await talk.say('say two');
  t.match(items(turn, 'systemNotice'), [{ kind: 'agentSessionLost' }]);
  t.equal(textOf(turn), 'two');
});

t.test('a question that the agent withdraws is withdrawn from people, and its turn continues', async (t) => {
  const talk = await Talk.join(t, server);
  const { client, threadId } = talk;
  const other = (await client.call('thread/start')).thread.id;
  for (const word of ['withdraw', 'withdrawterminal']) {
    talk.threadId = threadId;
    const asking = await talk.start(`${word} touch never`, 'say on');
    const { params } = await client.until(
      ({ method, params }) => method === 'item/approval/request' && params.turnId === asking,
      'a question',
    );
    talk.threadId = other;
    await talk.say('takeback');
    talk.threadId = threadId;
    const turn = await talk.end(asking);
    t.equal(textOf(turn), 'withdrawn -32800on', word);
    t.match(turn, { status: 'completed' });
    const { requestId } = params;
    t.match(items(turn, 'approvalResponse'), [{ requestId, decision: 'cancel', decidedBy: 'policy' }]);
    t.match(items(turn, 'toolResult'), [{ outcome: 'cancelled' }]);
    const late = client.call('approval/respond', { requestId, decision: 'accept' });
    await t.rejects(late, 'a withdrawn question takes no decision');
  }
});

t.test('a request to the agent is withdrawn when its turn is interrupted', async (t) => {
  const talk = await Talk.join(t, server);
  const { client, threadId: watching } = talk;
  const watcher = await talk.start('say ready', 'slow');
  const said = (text: string) =>
    client.until(
      ({ method, params }) =>
        method === 'item/agentMessage/delta' && params.threadId === watching && params.delta.includes(text),
      text,
    );
  await said('ready');
  talk.threadId = (await client.call('thread/start')).thread.id;
  const turnId = await talk.start('say never');
  await said('asked');
  await client.call('turn/interrupt', { threadId: talk.threadId, turnId });
  t.match(await talk.end(turnId), { status: 'cancelled', interruptedBy: 'user' });
  talk.threadId = watching;
  t.equal(textOf(await talk.end(watcher)), 'ready, asked for a session and withdrawn');
});

t.test('an agent asks by a form and by a link, and the first valid answer counts', async (t) => {
  const { talk } = await Talk.begin(t);
  const asked = async (turnId: string) =>
    (
      await talk.client.until(
        ({ method, params }) => method === 'question/asked' && params.turnId === turnId,
        'a question',
      )
    ).params;
  const requestedSchema = { type: 'object', properties: { size: { type: 'integer', minimum: 1 } }, required: ['size'] };
  const first = await talk.start(`elicit ${JSON.stringify({ mode: 'form', message: 'Size?', requestedSchema })}`);
  const { requestId, question } = await asked(first);
  t.match(question, { source: 'externalAgent', from: 'stub', message: 'Size?' });
  const answer = (content: object) => talk.client.call('question/answer', { requestId, action: 'accept', content });
  await t.rejects(answer({ size: 0 }), /"code":-32023/);
  await answer({ size: 3 });
  await t.rejects(answer({ size: 4 }), /"code":-32022/);
  const turn = await talk.end(first);
  t.equal(textOf(turn), '{"action":"accept","content":{"size":3}}');
  t.match(items(turn, 'question'), [{ state: 'answered', answers: { size: 3 } }]);

  const link = { mode: 'url', message: 'Log in', url: 'https://example.com/login', elicitationId: 'l1' };
  const second = await talk.start(`elicit ${JSON.stringify(link)}`);
  const { requestId: linkId, question: shown } = await asked(second);
  t.match(shown, { url: link.url });
  await talk.client.call('question/answer', { requestId: linkId, action: 'decline' });
  t.equal(textOf(await talk.end(second)), '{"action":"decline"}');
  const refused = await talk.say(`elicit ${JSON.stringify({ ...link, url: 'javascript:alert(1)' })}`);
  t.match(textOf(refused), /"code":-32602/);
});
