import { existsSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import * as v from 'valibot';
import { AppServerClient } from '../../../src/client/index.ts';
import { createLogger } from '../../../src/log/index.ts';
import { createReviewAgent } from '../../../src/review/agent/index.ts';
import { BackendSettings } from '../../../src/review/settings/index.ts';
import { eventually } from '../../appserver/harness.ts';
import { stubAgent } from '../../external/talk.ts';
import {
  type Answer,
  answered,
  delta,
  event,
  eventStream,
  hang,
  type Reply,
  rateLimited,
  refusal,
  type UpstreamRequest,
  write,
} from '../../fixtures/upstream/mock-upstream.ts';
import { faulty, hooksOf, item, type Message, openFinding, stage, stages } from './harness.ts';

/** The stage of a test that changes no settings and leaves the agent server alone. */
const onShared = stages(t);

const finding = {
  severity: 'major',
  title: 'Reads past the end',
  body: 'The last round adds undefined.',
  path: 'src/total.ts',
  oldText: faulty,
};
const submit = (...findings: object[]): Answer => ({
  toolCalls: [{ name: 'SubmitReviewDraft', arguments: { summary: 'A loop takes the place of reduce.', findings } }],
});
const call = (name: string, args: object): Answer => ({ toolCalls: [{ name, arguments: args }] });

const messagesOf = ({ body }: UpstreamRequest): Message[] => body.messages;
/** Results of tools in the running turn. */
const results = (request: UpstreamRequest): string[] => {
  const messages = messagesOf(request);
  const since = messages.slice(messages.findLastIndex(({ role }) => role === 'user') + 1);
  return since.filter(({ role }) => role === 'tool').map(({ content }) => content);
};
let number = 0;
/** Gives one answer after the other to any requests; then reports that it is done. */
function scripted(...answers: readonly Answer[]): Reply {
  let at = 0;
  return (request) => {
    const answer = answers[at] ?? { text: 'done' };
    at += 1;
    number += 1;
    const toolCalls = answer.toolCalls?.map((each, index) => ({ id: `call_${number}_${index}`, ...each }));
    return answered(request, { ...answer, pieceLength: 400, ...(toolCalls && { toolCalls }) });
  };
}

t.test('a draft that is handed in comes back with its places', async (t) => {
  const { agent, assignment, upstream, worktree } = await onShared(t, scripted(submit(finding)));
  const { hooks, turns, activity } = hooksOf();
  const submission = await agent.review(assignment(), hooks);
  t.match(submission, {
    summary: 'A loop takes the place of reduce.',
    findings: [{ finding, anchor: { placement: 'inline', side: 'RIGHT', line: 3 }, fingerprint: /^[0-9a-f]{24}$/ }],
    resolved: [],
    warnings: [],
    usage: { totalTokens: 36 },
  });
  t.equal(turns[0]?.turnId, null, 'told before the model is asked');
  t.strictSame(turns[1], { threadId: submission.threadId, turnId: submission.turnId });
  t.ok(activity() > 5);
  const [first] = upstream.requests;
  const system = first?.body.messages[0].content ?? '';
  t.match(system, worktree, 'the worktree is the workspace');
  t.match(first?.body.messages[1].content, '+  for (let i = 0; i <= prices.length; i++)');
  const names = first?.body.tools.map((tool: { function: { name: string } }) => tool.function.name);
  t.strictSame(names, ['ReadFile', 'GrepFiles', 'FindFiles', 'SubmitReviewDraft', 'ResolveReviewFinding']);
});

t.test('our own agent reviews, read-only, also where another one does the turns of the workspace', async (t) => {
  const { agent, assignment, upstream } = await stage(t, scripted(submit(finding)), { config: stubAgent() });
  t.match(await agent.review(assignment(), hooksOf().hooks), { findings: [{ finding }] });
  const [first] = upstream.requests;
  const names = first?.body.tools.map((tool: { function: { name: string } }) => tool.function.name);
  t.strictSame(names, ['ReadFile', 'GrepFiles', 'FindFiles', 'SubmitReviewDraft', 'ResolveReviewFinding']);
});

t.test('a finding that cannot be anchored is reported in the same turn and can be corrected there', async (t) => {
  const wrong = { ...finding, oldText: 'for (let i = 0; i < prices.length; i++)' };
  const elsewhere = { ...finding, title: 'Elsewhere', path: 'src/totals.ts' };
  const { agent, assignment, upstream } = await onShared(t, scripted(submit(wrong, elsewhere), submit(finding)));
  const { hooks, turns } = hooksOf();
  const submission = await agent.review(assignment(), hooks);
  t.match(submission.findings, [{ anchor: { placement: 'inline', line: 3 } }]);
  t.equal(submission.findings.length, 1, 'the last draft holds');
  t.strictSame(submission.warnings, []);
  t.equal(turns.length, 2, 'one turn');
  const [answer = ''] = results(upstream.requests[1] as UpstreamRequest);
  t.match(answer, /2 of 2 findings/);
  t.match(answer, /1\. "Reads past the end": oldTextNotFound/);
  t.match(answer, /on the RIGHT side: 1–5/, 'the lines that can be commented');
  t.match(answer, /2\. "Elsewhere": pathNotInDiff.*src\/total\.ts/, 'the files that there are');
});

t.test('a finding that cannot be anchored is published with its file or the summary, with a warning', async (t) => {
  const wrong = { ...finding, oldText: 'not there' };
  const elsewhere = { ...finding, title: 'Elsewhere', path: 'src/none.ts' };
  const draft = submit(wrong, elsewhere, finding);
  const { agent, assignment, upstream } = await onShared(t, scripted(draft, draft, draft), {
    limits: { submissions: 2 },
  });
  const submission = await agent.review(assignment(), hooksOf().hooks);
  t.match(submission.findings, [
    { anchor: { placement: 'file' }, finding: { path: 'src/total.ts' } },
    { anchor: { placement: 'summary' }, finding: { path: 'src/none.ts' } },
    { anchor: { placement: 'inline' } },
  ]);
  t.match(submission.warnings, [/Reads past the end.*oldTextNotFound.*file/, /Elsewhere.*pathNotInDiff.*summary/]);
  const answer = results(upstream.requests.at(-1) as UpstreamRequest);
  t.match(answer, [/findingsNotPlaced/, /is taken, with 3 findings/, /draftFinal/], 'not for ever');
});

t.test('a draft of another shape is refused with its problem, and the valid one before it counts', async (t) => {
  const { agent, assignment, upstream } = await onShared(
    t,
    scripted(
      submit(finding),
      submit({ ...finding, severity: 'RED' }),
      call('SubmitReviewDraft', { findings: 'none' }),
      submit({ ...finding, newText: null, line: null, side: null }),
      submit({ ...finding, title: '' }),
    ),
  );
  const submission = await agent.review(assignment(), hooksOf().hooks);
  t.equal(submission.findings.length, 1);
  const answer = results(upstream.requests.at(-1) as UpstreamRequest);
  t.match(answer, [
    /is taken/,
    /draftInvalid: findings\.0\.severity.*before this one holds/,
    /draftInvalid: .*summary/,
    /is taken/,
    /draftInvalid: findings\.0\.title/,
  ]);
});

t.test('open findings are resolved by their ids, and by no other', async (t) => {
  const openFindings = [openFinding('f-1'), openFinding('f-2')];
  const { agent, assignment, upstream } = await onShared(
    t,
    scripted(
      call('ResolveReviewFinding', { findingId: 'f-1', resolution: 'fixed', note: 'Gone.' }),
      call('ResolveReviewFinding', { findingId: 'f-9', resolution: 'fixed' }),
      call('ResolveReviewFinding', { findingId: 'f-2', resolution: 'outdated' }),
      submit(),
    ),
  );
  const submission = await agent.review(assignment({ more: { openFindings } }), hooksOf().hooks);
  t.strictSame(submission.resolved, [{ findingId: 'f-1', resolution: 'fixed', note: 'Gone.' }]);
  t.strictSame(submission.findings, []);
  const answer = results(upstream.requests.at(-1) as UpstreamRequest);
  t.match(answer, [/Noted/, /findingUnknown.*f-1, f-2/, /resolutionInvalid/, /is taken/]);
});

t.test('a model that ends without handing in is reminded once', async (t) => {
  const { agent, assignment, upstream } = await onShared(t, scripted({ text: 'It looks fine.' }, submit(finding)));
  const { hooks, turns } = hooksOf();
  const submission = await agent.review(assignment(), hooks);
  t.equal(submission.findings.length, 1);
  t.strictSame(
    turns.map(({ turnId }) => turnId),
    [null, 'turn_001', null, 'turn_002'],
  );
  t.equal(submission.turnId, 'turn_002');
  t.match(messagesOf(upstream.requests[1] as UpstreamRequest).at(-1)?.content, /ended without handing in/);
});

t.test('a model that never hands in has failed, and the thread is put away', async (t) => {
  const { agent, assignment, upstream, url } = await onShared(t, scripted());
  const { hooks, turns } = hooksOf();
  await t.rejects(agent.review(assignment(), hooks), { code: 'draftMissing', isRetryable: true });
  t.equal(upstream.requests.length, 2);
  const client = await connect(t, url);
  t.equal(await statusOf(client, turns[0]?.threadId), 'archived');
});

t.test('a submitted draft counts, also when the turn fails after it', async (t) => {
  let at = 0;
  const first = scripted(submit(finding));
  const { agent, assignment } = await onShared(t, (request) => {
    at += 1;
    return at === 1 ? first(request) : refusal(500, { message: 'down' });
  });
  const submission = await agent.review(assignment(), hooksOf().hooks);
  t.equal(submission.findings.length, 1);
});

t.test('a turn that fails says why, and whether to try again', async (t) => {
  const said = [
    { reply: refusal(500, { message: 'down' }), error: { isRetryable: true, message: /upstreamFailed/ } },
    { reply: refusal(401, { message: 'no' }), error: { isRetryable: false, message: /upstreamUnauthorized/ } },
    { reply: rateLimited(17), error: { isRetryable: true, retryAfterMs: 17_000 } },
    { reply: refusal(404, { message: 'no such model' }), error: { isRetryable: false } },
  ];
  let at = 0;
  const { agent, assignment } = await onShared(t, () => said[at]?.reply ?? []);
  for (const { error } of said) {
    await t.rejects(agent.review(assignment(), hooksOf().hooks), { code: 'turnFailed', ...error });
    at += 1;
  }
});

t.test('an aborted review ends its turn and rejects with the reason', async (t) => {
  const { agent, assignment, url, upstream } = await onShared(t, hanging);
  const abort = new AbortController();
  const { hooks, turns, activity } = hooksOf(abort.signal);
  const review = agent.review(assignment(), hooks);
  const rejected = t.rejects(review, { message: 'stalled' });
  await eventually(() => (upstream.requests.length > 0 && turns.length === 2) || undefined, 'the model is asked');
  const heard = activity();
  abort.abort(new Error('stalled'));
  await rejected;
  t.ok(heard > 0 && activity() >= heard);
  const client = await connect(t, url);
  const { thread } = await read(client, turns[0]?.threadId);
  t.match(thread, { status: 'archived', turns: [{ status: 'cancelled', interruptedBy: 'user' }] });
  await t.rejects(agent.review(assignment(), hooksOf(abort.signal).hooks), { message: 'stalled' }, 'not even begun');
});

t.test('a hook that throws ends the turn, too: the review is not ours any more', async (t) => {
  const { agent, assignment, url } = await onShared(t, hanging);
  const { hooks } = hooksOf();
  let threadId = '';
  const onTurn: typeof hooks.onTurn = async (turn) => {
    threadId = turn.threadId;
    if (turn.turnId !== null) throw new Error('the lease was lost');
  };
  await t.rejects(agent.review(assignment(), { ...hooks, onTurn }), { message: 'the lease was lost' });
  const client = await connect(t, url);
  t.match(await read(client, threadId), { thread: { status: 'archived', turns: [{ status: 'cancelled' }] } });
});

t.test('another process ends a turn that it did not begin', async (t) => {
  const { agent, assignment, newAgent, workspace, upstream } = await onShared(t, hanging);
  const { hooks, turns } = hooksOf();
  const rejected = t.rejects(agent.review(assignment(), hooks), { code: 'turnFailed', isRetryable: true });
  await eventually(() => (upstream.requests.length > 0 && turns.length === 2) || undefined, 'the model is asked');
  const other = newAgent();
  const { threadId = '' } = turns[0] ?? {};
  await other.interrupt(workspace, threadId);
  await rejected;
  await other.interrupt(workspace, threadId);
  await other.interrupt(workspace, 'thread_that_never_was');
  t.pass('what has ended already is fine, and so is what never was');
});

t.test('an agent server that dies in mid-turn is a lost connection; the next one is found', async (t) => {
  const { agent, assignment, server, upstream, workspace, home } = await stage(t, hanging, {
    limits: { reconnectMs: 300 },
  });
  const { hooks, turns } = hooksOf();
  const rejected = t.rejects(agent.review(assignment(), hooks), { code: 'agentConnectionLost', isRetryable: true });
  await eventually(() => (upstream.requests.length > 0 && turns.length === 2) || undefined, 'the model is asked');
  server.child.kill('SIGKILL');
  await rejected;
  await server.ended;
  await t.rejects(agent.review(assignment(), hooksOf().hooks), { code: 'agentUnavailable', isRetryable: true });
  t.match(await agent.status(workspace), { state: 'unreachable' });
  t.ok(home);
});

t.test('a server that refuses or is missing is unavailable, and no token is sent', async (t) => {
  const { url, home, assignment, workspace } = await onShared(t, scripted());
  const wrong = url.replace(/token=.*$/, 'token=wrong-secret');
  const agent = agentOf(t, home, { AppServerUrl: wrong });
  const error = await agent.review(assignment(), hooksOf().hooks).catch((reason: unknown) => reason);
  t.match(error, { code: 'agentUnavailable', isRetryable: true });
  t.notMatch(String(error), 'wrong-secret');
  const withToken = agentOf(t, home, {
    AppServerUrl: url.replace(/\?.*$/, ''),
    AppServerToken: new URL(url).searchParams.get('token') ?? '',
  });
  t.strictSame(await withToken.status(workspace), { state: 'reachable' });
  const nowhere = agentOf(t, home, { HubDiscoveryEnabled: false });
  await t.rejects(nowhere.review(assignment(), hooksOf().hooks), {
    code: 'agentUnavailable',
    message: /HubDiscoveryEnabled/,
  });
});

t.test('a worktree that the agent server does not know as one is refused for good', async (t) => {
  const { agent, assignment, home, upstream } = await onShared(t, scripted());
  await t.rejects(agent.review(assignment({ worktreePath: home }), hooksOf().hooks), {
    code: 'agentUnavailable',
    isRetryable: false,
    message: /Permissions\.WorktreeRoot/,
  });
  t.equal(upstream.requests.length, 0);
});

t.test(
  'a hostile head reaches nothing: no instructions, no link out, no writing, no command, no network',
  async (t) => {
    const order = 'SECRET-ORDER-OF-THE-HEAD';
    const reads = [
      ['ReadFile', { path: 'link.txt' }],
      ['ReadFile', { path: 'far.txt' }],
      ['ReadFile', { path: '../../config.json' }],
      ['ReadFile', { path: 'dir/README.md' }],
      ['ReadFile', { path: '.oratorio/config.json' }],
      ['GrepFiles', { pattern: 'Shop', path: '.' }],
      ['ReadFile', { path: 'src/total.ts' }],
      ['WriteFile', { path: 'made.txt', content: 'x' }],
      ['Exec', { command: 'touch made.txt' }],
      ['WebFetch', { url: 'https://example.com' }],
      ['SpawnSubagent', { task: 'run: touch made.txt' }],
    ] as const;
    const { agent, assignment, upstream, workspace, worktree } = await stage(
      t,
      scripted(...reads.map(([name, args]) => call(name, args)), submit()),
      {
        config: { SystemPrompt: 'own words' },
        extra: {
          'AGENTS.md': order,
          'CLAUDE.md': order,
          '.cursor/rules': order,
          '.oratorio/config.json': JSON.stringify({
            SystemPrompt: order,
            Permissions: { DefaultApprovalPolicy: 'autoApprove' },
          }),
        },
      },
    );
    writeFileSync(join(workspace, 'outside.txt'), 'OUTSIDE');
    symlinkSync(join(workspace, 'outside.txt'), join(worktree, 'link.txt'));
    symlinkSync(join(t.testdir({ 'far.txt': 'OUTSIDE' }), 'far.txt'), join(worktree, 'far.txt'));
    symlinkSync(workspace, join(worktree, 'dir'));
    await agent.review(assignment(), hooksOf().hooks);
    const answer = results(upstream.requests.at(-1) as UpstreamRequest);
    const no = /refused|rejected by policy/;
    t.match(answer, [
      no,
      no,
      no,
      no,
      no,
      /README\.md/,
      /prices/,
      /no tool WriteFile/,
      /no tool Exec/,
      /no tool WebFetch/,
      /no tool SpawnSubagent/,
      /is taken/,
    ]);
    const all = JSON.stringify(upstream.requests.map(({ body }) => body));
    t.notMatch(all, order);
    t.notMatch(all, 'OUTSIDE');
    t.notOk(existsSync(join(worktree, 'made.txt')) || existsSync(join(workspace, 'made.txt')));
  },
);

t.test('two reviews share a connection and do not mix', async (t) => {
  const byTitle: Reply = (request) => {
    const isFirst = messagesOf(request)[1]?.content.includes('title: first');
    const answer =
      results(request).length === 0 ? submit({ ...finding, title: isFirst ? 'one' : 'two' }) : { text: 'done' };
    return answered(request, answer);
  };
  const { agent, assignment } = await onShared(t, byTitle);
  const of = (title: string) => assignment({ more: { item: { ...item, title } } });
  const [one, two] = await Promise.all([
    agent.review(of('first'), hooksOf().hooks),
    agent.review(of('second'), hooksOf().hooks),
  ]);
  t.strictSame(
    [one, two].map(({ findings }) => findings[0]?.finding.title),
    ['one', 'two'],
  );
  t.not(one.threadId, two.threadId);
});

const hanging: Reply = () => [eventStream, write(event(delta({ role: 'assistant', content: 'Let me see' }))), hang];

function agentOf(t: Test, home: string, AgentServer: object) {
  const settings = v.parse(BackendSettings, { AgentServer });
  const logger = createLogger({ name: 'test', level: 'silent' });
  const agent = createReviewAgent({ settings: () => settings, logger, home });
  t.teardown(() => agent.close());
  return agent;
}

async function connect(t: Test, url: string): Promise<AppServerClient> {
  const client = await AppServerClient.connect(url, { timeoutMs: 120_000 });
  t.teardown(() => client.close());
  return client;
}

const read = async (client: AppServerClient, threadId = '') =>
  (await client.request('thread/read', { threadId, includeTurns: true })) as { thread: Record<string, unknown> };

const statusOf = async (client: AppServerClient, threadId?: string) => (await read(client, threadId)).thread['status'];
