/** Sessions of `vscode-jsonrpc` over a WebSocket with the demo model, whose tools are the real ones: approvals. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { ErrorCodes, ResponseError } from 'vscode-jsonrpc/node';
import type { ApprovalDecision, ApprovalRequest, Item } from '../../src/protocol/index.ts';
import type { Message } from './harness.ts';
import { type SessionOptions, scenario } from './session.ts';

const accept = () => ({ decision: 'accept' });
const never = () => new Promise(() => undefined);

const results = (items: readonly Item[]) => items.filter((item) => item.type === 'toolResult');
const types = (items: readonly Item[]) => items.map(({ type }) => type);

scenario(t, 'a turn runs its tools after an approval and reports their results', {}, async (t, { open, read }) => {
  const session = await open({ onApproval: accept });
  const { threadId, turnId } = await session.begin(
    'write a.txt: hello\nread a.txt\nrun: cat a.txt | tee b.txt && echo there',
  );
  const { turn } = await session.until('turn/completed');
  t.equal(read('a.txt'), 'hello\n');
  t.match(turn, { id: turnId, threadId, status: 'completed', finishReason: 'stop' });
  t.match(session.approvals, [
    { tool: 'WriteFile', approvalType: 'file', operation: 'write', target: /a\.txt$/ },
    { tool: 'Exec', approvalType: 'shell', operation: 'run', target: 'cat a.txt | tee b.txt && echo there' },
  ]);
  t.match(results(turn.items), [
    { tool: 'WriteFile', outcome: 'completed' },
    { tool: 'ReadFile', outcome: 'completed', text: /hello/ },
    { tool: 'Exec', outcome: 'completed', text: /hello\nthere/ },
  ]);
  t.match(
    turn.items.find(({ type }) => type === 'commandExecution'),
    { command: 'cat a.txt | tee b.txt && echo there', output: 'hello\nthere\n', exitCode: 0, outcome: 'completed' },
  );
  const output = session.heard.flatMap(({ method, params }) =>
    method === 'item/commandExecution/outputDelta' ? [params['delta']] : [],
  );
  t.equal(output.join(''), 'hello\nthere\n');
  const { thread } = await session.call('thread/read', { threadId, includeTurns: true });
  t.same(thread.turns, [turn], 'thread/read returns the notified turn');
});

scenario(
  t,
  'a pending approval of a dropped connection is requested of the next client, whose answer counts',
  {},
  async (t, { open }) => {
    for (const way of ['thread/resume', 'thread/subscribe'] as const) {
      const first = await open({ onApproval: never });
      const { threadId, turnId } = await first.begin('run: touch again');
      const asked = await first.approval();
      await first.drop();
      const second = await open({ onApproval: accept });
      t.same((await second.call('approval/list', { threadId })).data, [asked], way);
      t.match((await second.call('thread/list', {})).data, [
        { id: threadId, runtime: { running: true, waitingOnApproval: true } },
      ]);
      if (way === 'thread/resume') {
        const { thread } = await second.call('thread/resume', { threadId });
        t.match(thread.turns?.at(-1), { id: turnId, status: 'waitingApproval' });
      } else {
        await second.call('thread/subscribe', { threadId, replayRecent: true });
        t.match((await second.until('turn/started')).turn, { id: turnId, status: 'waitingApproval' });
      }
      const { turn } = await second.until('turn/completed');
      t.same(second.approvals, [asked], 'the same question, with the same id');
      t.match(results(turn.items), [{ tool: 'Exec', outcome: 'completed' }]);
      await second.call('thread/delete', { threadId });
    }
  },
);

scenario(
  t,
  'a pending approval of a sub-agent is requested of a client that resumes its parent',
  {},
  async (t, { open }) => {
    const first = await open({ onApproval: never });
    const { threadId } = await first.begin('call SpawnSubagent {"task": "run: touch deep"}');
    const asked = await first.approval();
    t.not(asked.threadId, threadId);
    await first.drop();
    const second = await open({ onApproval: accept });
    await second.call('thread/resume', { threadId });
    const { turn } = await second.until('turn/completed', (params) => params.threadId === threadId);
    t.same(second.approvals, [asked]);
    t.match(results(turn.items), [{ tool: 'SpawnSubagent', outcome: 'completed', text: /deep/ }]);
  },
);

scenario(
  t,
  'an answer by approval/respond counts, and a later answer of the first client is ignored',
  {},
  async (t, { open }) => {
    let answer: (value: unknown) => void = () => undefined;
    const slow = await open({
      onApproval: () =>
        new Promise((resolve) => {
          answer = resolve;
        }),
    });
    const { threadId } = await slow.begin('run: touch once');
    const { requestId } = await slow.approval();
    const device = await open();
    const { data } = await device.call('approval/list', {});
    t.match(data, [{ requestId, threadId }]);
    await device.call('approval/respond', { requestId, decision: 'accept' });
    const resolved = await slow.until('item/approval/resolved');
    t.match(resolved, { requestId, decision: 'accept', decidedBy: 'user' });
    answer({ decision: 'cancel' });
    const { turn } = await slow.until('turn/completed');
    t.match(results(turn.items), [{ outcome: 'completed' }]);
    t.match(await device.refused('approval/respond', { requestId, decision: 'decline' }), { name: 'approvalNotFound' });
    t.match(await slow.refused('approval/respond', { requestId: 'approval_none', decision: 'accept' }), {
      name: 'approvalNotFound',
      data: { requestId: 'approval_none' },
    });
  },
);

scenario(t, 'two clients receive the approval request, and the first answer counts', {}, async (t, { open }) => {
  const answers: ((value: unknown) => void)[] = [];
  const onApproval = () => new Promise((resolve) => answers.push(resolve));
  const [one, other] = [await open({ onApproval }), await open({ onApproval })];
  const { threadId } = await one.begin('run: touch twice');
  await one.approval();
  await other.call('thread/subscribe', { threadId, replayRecent: true });
  t.same(await other.approval(), await one.approval());
  answers[1]?.({ decision: 'decline' });
  answers[0]?.({ decision: 'accept' });
  const { turn } = await one.until('turn/completed');
  const responses = turn.items.filter(({ type }) => type === 'approvalResponse');
  t.equal(responses.length, 1);
});

/** Kinds of refusal of a client, with its handler and whether a user was asked. */
const refusing: readonly [string, SessionOptions['onApproval'], wasAsked?: true][] = [
  ['answers with an error', () => new ResponseError(ErrorCodes.InternalError, 'no idea')],
  ['throws', () => Promise.reject(new Error('the window was closed'))],
  ['does not know the method (-32601)', undefined],
  ['answers with something else', () => ({ decision: 'perhaps' })],
  ['answers with nothing', () => null],
  ['declines', () => ({ decision: 'decline' satisfies ApprovalDecision }), true],
  ['declines by itself', () => ({ decision: 'decline' satisfies ApprovalDecision, unattended: true })],
];
scenario(t, 'an approval request is declined when the client does not accept it', {}, async (t, { open }) => {
  for (const [how, onApproval, wasAsked] of refusing) {
    await t.test(`the client ${how}`, async (t) => {
      const session = await open(onApproval && { onApproval });
      await session.begin('run: touch never');
      const { turn } = await session.until('turn/completed');
      t.match(results(turn.items), [
        { tool: 'Exec', outcome: 'declined', text: wasAsked ? /user declined/ : /no user was asked/ },
      ]);
      t.notOk(types(turn.items).includes('commandExecution'));
      await session.drop();
    });
  }
});

scenario(t, 'the decision cancel ends the turn', {}, async (t, { open, path }) => {
  const session = await open({ onApproval: () => ({ decision: 'cancel' }) });
  await session.begin('run: touch never\nwrite never: either');
  const { turn } = await session.until('turn/cancelled');
  t.match(turn, { status: 'cancelled', interruptedBy: 'approval' });
  t.notOk(existsSync(join(path, 'never')));
});

scenario(
  t,
  'a client without approvalSupport receives no approval request; another client may answer',
  {},
  async (t, { open }) => {
    const quiet = await open({ capabilities: { approvalSupport: false }, onApproval: accept });
    const { threadId } = await quiet.begin('run: touch asked');
    await quiet.until('item/completed', ({ item }) => item.type === 'approvalRequest');
    const other = await open({ onApproval: accept });
    await other.call('thread/resume', { threadId });
    await quiet.until('turn/completed');
    t.same(quiet.approvals, []);
    t.equal(other.approvals.length, 1);
  },
);

scenario(
  t,
  'an approval without an answer is declined, and a late answer is refused',
  { Permissions: { ApprovalTimeoutSeconds: 1 } },
  async (t, { open }) => {
    let answer: (value: unknown) => void = () => undefined;
    const session = await open({
      onApproval: () =>
        new Promise((resolve) => {
          answer = resolve;
        }),
    });
    await session.begin('run: touch late');
    const { requestId, createdAt, expiresAt } = await session.approval();
    t.equal(Date.parse(expiresAt) - Date.parse(createdAt), 1_000);
    t.match(await session.until('item/approval/resolved'), { requestId, decision: 'decline', decidedBy: 'timeout' });
    const { turn } = await session.until('turn/completed');
    t.match(results(turn.items), [{ outcome: 'declined', text: /declined: no answer .* in time/ }]);
    answer({ decision: 'accept' });
    t.match(await session.refused('approval/respond', { requestId, decision: 'accept' }), { name: 'approvalTimeout' });
  },
);

scenario(t, 'an approval for the session or for always covers later calls', {}, async (t, { open }) => {
  const decisions: ApprovalDecision[] = ['acceptForSession', 'acceptAlways'];
  const session = await open({ onApproval: () => ({ decision: decisions.shift() ?? 'decline' }) });
  const { threadId } = await session.begin('run: touch same');
  await session.until('turn/completed');
  await session.say(threadId, 'run: touch same');
  await session.until('turn/completed', undefined, 2);
  t.equal(session.approvals.length, 1, 'the session');
  await session.begin('run: touch same');
  await session.until('turn/completed', undefined, 3);
  t.equal(session.approvals.length, 2, 'another session is asked for itself');
  await session.begin('run: touch same');
  const { turn } = await session.until('turn/completed', undefined, 4);
  t.equal(session.approvals.length, 2, 'always');
  t.match(results(turn.items), [{ outcome: 'completed' }]);
});

scenario(t, 'an interrupt withdraws the pending approval of the turn', {}, async (t, { open }) => {
  const session = await open({ onApproval: never });
  const { threadId, turnId } = await session.begin('run: touch never');
  const { requestId } = await session.approval();
  await session.call('turn/interrupt', { threadId, turnId });
  const { turn } = await session.until('turn/cancelled');
  t.match(turn, { interruptedBy: 'user' });
  t.match(await session.until('item/approval/resolved'), { requestId, decision: 'cancel', decidedBy: 'policy' });
  t.same((await session.call('approval/list', {})).data, []);
});

scenario(t, 'a thread with an approval policy requests no approval', {}, async (t, { open }) => {
  const session = await open({ onApproval: accept });
  for (const [approvalPolicy, outcome] of [
    ['autoApprove', 'completed'],
    ['interrupt', 'declined'],
  ] as const) {
    const { threadId } = await session.begin('run: touch policy', { config: { approvalPolicy } });
    const { turn } = await session.until('turn/completed', (params) => params.threadId === threadId);
    t.match(results(turn.items), [{ outcome }]);
  }
  t.same(session.approvals satisfies ApprovalRequest[], []);
});

scenario(t, 'an unknown value is absent instead of null', {}, async (t, { open }) => {
  const session = await open({ onApproval: accept });
  await session.begin('run: false');
  await session.until('turn/completed');
  const holdsNull = (value: Message): boolean =>
    value === null || (typeof value === 'object' && Object.values(value).some(holdsNull));
  t.same(session.heard.filter(holdsNull), []);
});
