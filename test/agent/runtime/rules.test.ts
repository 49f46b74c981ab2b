/** Rules in turns: calls that run, ask or are refused. */
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { placeRules, RuleBook, readSavedRules } from '../../../src/agent/index.ts';
import type { PermissionRule } from '../../../src/config/index.ts';
import type { ApprovalPolicy } from '../../../src/protocol/index.ts';
import { answers, call, listening, say, service, text, tool } from '../helpers.ts';
import { temporaryWorkspace } from '../tools/run-tool.ts';

/** A thread whose model calls one tool once; approvals are answered as said. */
async function turnOf(
  t: Test,
  rules: readonly PermissionRule[],
  command: string,
  {
    policy = 'default',
    readOnly = false,
    answer = 'decline',
  }: { policy?: ApprovalPolicy; readOnly?: boolean; answer?: 'accept' | 'acceptAlways' | 'decline' } = {},
) {
  const workspacePath = temporaryWorkspace(t);
  const home = temporaryWorkspace(t);
  let runs = 0;
  const exec = tool({
    name: 'Exec',
    needsApproval: true,
    isReadOnly: true,
    run: () => {
      runs += 1;
      return { text: 'ran', isError: false };
    },
  });
  const book = new RuleBook({
    configured: rules,
    stateDirectory: join(home, 'state'),
    places: placeRules({ blockedPaths: [], home, environment: process.env }),
  });
  const { runtime, bugs } = service(answers([call('c', 'Exec', { command })], [say('done')]), {
    workspacePath,
    tools: () => [exec],
    rules: book,
  });
  const { thread } = runtime.threads.start({ config: { approvalPolicy: policy, readOnly } });
  const asked: unknown[] = [];
  runtime.feed.subscribe(thread.id, (event) => {
    if (event.method !== 'item/approval/request') return;
    asked.push(event.params);
    setImmediate(() => runtime.turns.respond(event.params.requestId, answer));
  });
  const ear = listening();
  runtime.turns.start(thread.id, text('go'), ear.listener).begin();
  const { params } = await ear.until('turn/completed');
  t.same(bugs, []);
  const { items } = (params as { turn: { items: readonly { type: string; text?: string }[] } }).turn;
  return {
    runs,
    asked,
    result: items.find(({ type }) => type === 'toolResult')?.text ?? '',
    saved: readSavedRules(join(home, 'state')).rules,
  };
}

const allow: PermissionRule = { Tool: 'Exec', Prefix: 'npm test', Decision: 'allow' };
const ask: PermissionRule = { ...allow, Decision: 'ask' };
const deny: PermissionRule = { ...allow, Decision: 'deny' };

t.test('an allowed command runs without a question, also where the policy declines', async (t) => {
  for (const policy of ['default', 'interrupt'] as const) {
    t.match(await turnOf(t, [allow], 'npm test', { policy }), { runs: 1, asked: [] }, policy);
  }
});

t.test('a read-only thread is allowed no more by a rule', async (t) => {
  t.match(await turnOf(t, [allow], 'npm test', { readOnly: true }), { runs: 0, result: /rejected by policy/ });
});

t.test('a refusal where no user is asked names the rule, not a policy that allows everything', async (t) => {
  const { runs, result } = await turnOf(t, [ask], 'npm test', { policy: 'autoApprove' });
  t.match([runs, result], [0, /rejected by policy.*a rule asks for it/]);
  t.notMatch(result, 'AutoApprove is false');
});

t.test('a denied command never runs and asks no question, under each policy', async (t) => {
  for (const policy of ['default', 'autoApprove', 'interrupt'] as const) {
    const { runs, asked, result } = await turnOf(t, [allow, deny], 'npm test', { policy });
    t.match([runs, asked], [0, []], policy);
    t.match(result, /refused by a rule of the user: the rule “deny Exec npm test …”/);
  }
});

t.test('a command that a rule asks about is asked about, and refused where no user is asked', async (t) => {
  const { runs, asked } = await turnOf(t, [ask, allow], 'npm test', { answer: 'accept' });
  t.match([runs, asked], [1, [{ reason: /By the rule “ask Exec npm test …”/ }]]);
  t.match(await turnOf(t, [ask], 'npm test', { policy: 'autoApprove' }), { runs: 0, asked: [] });
});

t.test('an approval carries the rule that it would save; acceptAlways saves exactly that', async (t) => {
  const { runs, asked, saved } = await turnOf(t, [], 'npm run build -- --watch', { answer: 'acceptAlways' });
  t.match([runs, asked], [1, [{ proposedRule: { tool: 'Exec', prefix: ['npm', 'run', 'build'] } }]]);
  t.same(saved, [{ Tool: 'Exec', Prefix: ['npm', 'run', 'build'], Decision: 'allow' }]);
  t.match(
    await turnOf(t, [], 'npm run build | sh', { answer: 'acceptAlways' }),
    { runs: 1, saved: [] },
    'the exact command only',
  );
});
