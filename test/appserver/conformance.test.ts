/**
 * The whole protocol once, with `vscode-jsonrpc`: every method with a result that its schema describes completely, every
 * notification and server request, every error. The last test reports missing parts.
 */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { fileURLToPath } from 'node:url';
import t from 'tap';
import { ModelError } from '../../src/agent/index.ts';
import { revokeTrust, trustWorkspace } from '../../src/config/index.ts';
import { rpcErrors, rpcMethods, rpcNotifications, serverRequests, type Turn } from '../../src/protocol/index.ts';
import { say, says, scripted } from '../agent/helpers.ts';
import { OddAuthServer } from '../mcp/odd-auth-server.ts';
import { Client, deferred, makeWorkspace, startServer, stateOf, words } from './harness.ts';
import { Ledger, Session, scenario } from './session.ts';

const spoken = ({ items }: Turn) => items.filter(({ type }) => type !== 'reasoningContent');
const ledger = new Ledger();
const accept = () => ({ decision: 'accept' });
const fixture = fileURLToPath(new URL('../fixtures/mcp/stdio-server.mjs', import.meta.url));
const small = { transport: 'stdio' as const, command: process.execPath, args: [fixture, '2025'] };

scenario(t, 'a thread can be started, renamed, read, archived and deleted', {}, async (t, { open, path }) => {
  const session = await open({ ledger });
  const identity = { channelName: 'editor', userId: 'u1', workspacePath: path };
  const { thread } = await session.call('thread/start', { identity, displayName: 'first', historyMode: 'server' });
  const { id: threadId } = thread;
  t.match(await session.until('thread/started'), { thread: { id: threadId, displayName: 'first', identity } });
  t.match(await session.call('thread/list', { identity: { channelName: 'editor' } }), { data: [{ id: threadId }] });
  t.same(await session.call('thread/list', { channelName: 'elsewhere' }), { data: [] });

  await session.call('thread/rename', { threadId, displayName: '  second ' });
  t.match(await session.until('thread/renamed'), { threadId, displayName: 'second' });
  const config = { agentInstructions: 'Be brief.', approvalPolicy: 'interrupt' } as const;
  t.same(await session.call('thread/config/update', { threadId, config }), { config });
  const changed = await session.call('thread/config/update', { threadId, config: { approvalPolicy: 'autoApprove' } });
  t.same(changed, { config: { ...config, approvalPolicy: 'autoApprove' } }, 'what is absent stays');

  for (const number of [1, 2, 3, 4]) {
    await session.say(threadId, `echo turn ${number}`);
    await session.until('turn/completed', undefined, number);
  }
  await session.call('thread/subscribe', { threadId });
  await session.call('thread/compact', { threadId });
  t.match(await session.until('system/event'), { threadId, kind: 'compacted' });
  const { thread: page } = await session.call('thread/read', { threadId, includeTurns: true, turnLimit: 2 });
  t.match(page, {
    hasOlderTurns: true,
    turns: [{ id: 'turn_003' }, { id: 'turn_004' }],
    contextUsage: { window: 128_000 },
  });
  const { thread: older } = await session.call('thread/read', {
    threadId,
    includeTurns: true,
    beforeTurnId: 'turn_003',
  });
  t.match(older, { hasOlderTurns: false, turns: [{ id: 'turn_001' }, { id: 'turn_002' }] });
  const { thread: shorter } = await session.call('thread/rollback', { threadId, numTurns: 1 });
  t.match(shorter.turns?.at(-1), { id: 'turn_003' });
  await session.call('thread/unsubscribe', { threadId });

  await session.call('thread/archive', { threadId });
  t.match(await session.until('thread/statusChanged'), { threadId, status: 'archived' });
  t.same(await session.call('thread/list', {}), { data: [] });
  t.match(await session.call('thread/list', { includeArchived: true }), {
    data: [{ id: threadId, status: 'archived' }],
  });
  t.equal((await session.refused('turn/start', { threadId, input: words('x') })).name, 'threadNotActive');
  await session.call('thread/unarchive', { threadId });
  await session.until('thread/statusChanged', ({ status }) => status === 'active');

  const { thread: resumed } = await session.call('thread/resume', { threadId });
  t.equal(resumed.turns?.length, 3);
  t.match(await session.until('thread/resumed'), { thread: { id: threadId } });
  await session.call('thread/delete', { threadId });
  t.match(await session.until('thread/deleted'), { threadId });
  for (const method of ['thread/read', 'thread/rename', 'thread/delete', 'thread/compact', 'thread/rollback']) {
    const { name } = await session.refused(method, { threadId, displayName: 'x', numTurns: 1 });
    t.equal(name, 'threadNotFound', method);
  }
});

scenario(t, 'a turn can be shown, taken back with its files, and restored', {}, async (t, { open, path, read }) => {
  const session = await open({ ledger });
  writeFileSync(join(path, 'a.txt'), 'one\n');
  const config = { approvalPolicy: 'autoApprove' } as const;
  const { id: threadId } = (await session.call('thread/start', { config })).thread;
  await session.call('thread/subscribe', { threadId });
  await session.say(threadId, 'run: echo two > a.txt; mkdir made; echo new > made/b.txt');
  await session.until('turn/completed');
  t.equal(read('a.txt'), 'two\n');

  const diff = await session.call('turn/diff', { threadId, turnId: 'turn_001' });
  t.match(diff, { format: 'unified', diff: /^-one\n\+two$/m });
  t.same(
    (await session.call('turn/diff', { threadId, format: 'summary' })).files.map(({ path, change }) => [path, change]),
    [
      ['a.txt', 'modified'],
      ['made', 'created'],
      ['made/b.txt', 'created'],
    ],
  );
  t.equal((await session.refused('turn/diff', { threadId, turnId: 'turn_009' })).name, 'turnNotFound');
  t.match(await session.call('checkpoint/list', { threadId }), {
    data: [{ turnId: 'turn_001', kind: 'turn', isUndone: false, recovered: false, notCovered: [], notCoveredTotal: 0 }],
  });

  writeFileSync(join(path, 'a.txt'), 'mine\n');
  const refused = await session.refused('thread/rollback', { threadId, numTurns: 1, restoreFiles: true });
  const conflicts = [{ path: 'a.txt', change: 'modified', by: 'user' }];
  t.match(refused, { name: 'restoreConflict', data: { conflicts, conflictsTotal: 1 } });
  t.equal(read('a.txt'), 'mine\n');
  t.equal((await session.call('thread/read', { threadId, includeTurns: true })).thread.turns?.length, 1);
  const undone = await session.call('thread/rollback', { threadId, numTurns: 1, restoreFiles: true, force: true });
  t.match(undone, {
    thread: { turns: [] },
    restored: ['a.txt', 'made', 'made/b.txt'],
    restoredTotal: 3,
    conflictsTotal: 0,
  });
  t.match(await session.until('system/event', ({ kind }) => kind === 'filesRestored'), { threadId });
  t.equal(read('a.txt'), 'one\n');

  const { restoreId = '' } = undone;
  t.match(await session.call('checkpoint/restore', { threadId, turnId: restoreId, paths: ['made'] }), {
    restored: ['made', 'made/b.txt'],
  });
  t.same([read('made/b.txt'), read('a.txt')], ['new\n', 'one\n']);
  t.equal((await session.refused('checkpoint/restore', { threadId, turnId: 'turn_009' })).name, 'turnNotFound');

  t.notOk('runningProcesses' in undone, 'control: no command ran in the background');
  await session.say(threadId, 'call Exec {"command":"touch c.txt; sleep 1000","background":true}');
  await session.until('turn/completed', undefined, 2);
  t.match(await session.call('thread/rollback', { threadId, numTurns: 1, restoreFiles: true }), {
    runningProcesses: [{ command: 'touch c.txt; sleep 1000' }],
  });
});

scenario(t, 'files are not restored while another conversation works on them', {}, async (t, { open, read }) => {
  const session = await open({ ledger });
  const config = { approvalPolicy: 'autoApprove' } as const;
  const { id: threadId } = (await session.call('thread/start', { config })).thread;
  await session.call('thread/subscribe', { threadId });
  await session.say(threadId, 'run: echo new > a.txt');
  await session.until('turn/completed');
  const { threadId: other, turnId } = await session.begin('count to 5000');
  const rollback = { threadId, numTurns: 1, restoreFiles: true } as const;
  t.match(await session.refused('thread/rollback', rollback), { name: 'turnInProgress', data: { threadId: other } });
  t.match(await session.refused('checkpoint/restore', { threadId, turnId: 'turn_001' }), { name: 'turnInProgress' });
  t.equal(read('a.txt'), 'new\n');
  await session.call('turn/interrupt', { threadId: other, turnId });
  await session.until('turn/cancelled');
  t.match(await session.call('thread/rollback', rollback), { restored: ['a.txt'] }, 'control');
});

scenario(t, 'a conversation can be forked, also into a worktree of its own', {}, async (t, { open, path, read }) => {
  const git = (directory: string, ...args: string[]) =>
    execFileSync('git', ['-c', 'user.name=t', '-c', 'user.email=t@localhost', ...args], { cwd: directory }).toString();
  writeFileSync(join(path, 'a.txt'), 'one\n');
  writeFileSync(join(path, '.gitignore'), '.env\n.oratorio\n');
  git(path, 'init', '--quiet');
  git(path, 'add', '.');
  git(path, 'commit', '--quiet', '--message', 'first');
  writeFileSync(join(path, '.env'), 'KEY=1\n');
  const session = await open({ ledger });
  const config = { approvalPolicy: 'autoApprove' } as const;
  const { id: threadId } = (await session.call('thread/start', { config })).thread;
  for (const number of [1, 2]) {
    await session.say(threadId, `run: echo turn ${number} > a.txt`);
    await session.until('turn/completed', undefined, number);
  }
  const { thread: copy } = await session.call('thread/fork', { threadId, displayName: 'copy' });
  t.match(copy, { displayName: 'copy', forkedFromThreadId: threadId, turns: [{ id: 'turn_001' }, { id: 'turn_002' }] });
  t.notOk(copy.config?.workspaceOverride, 'it works in the same files');

  const { thread: fork } = await session.call('thread/fork', { threadId, atTurnId: 'turn_001', worktree: true });
  t.match(fork.turns, [{ id: 'turn_001', threadId: fork.id }]);
  const place = fork.config?.workspaceOverride ?? '';
  t.equal(dirname(place), join(path, '..', '.oratorio-worktrees'), 'beside the workspace, not below it');
  const inFork = (file: string) => readFileSync(join(place, file), 'utf8');
  t.same([inFork('a.txt'), inFork('.env'), read('a.txt')], ['turn 1\n', 'KEY=1\n', 'turn 2\n']);
  t.equal(git(place, 'status', '--porcelain'), ' M a.txt\n');

  await session.say(fork.id, 'run: echo in the fork > a.txt');
  await session.until('turn/completed', undefined, 3);
  t.same([inFork('a.txt'), read('a.txt')], ['in the fork\n', 'turn 2\n']);
  await session.call('thread/rollback', { threadId: fork.id, numTurns: 1, restoreFiles: true });
  t.equal(inFork('a.txt'), 'turn 1\n');
  t.equal((await session.refused('thread/fork', { threadId, atTurnId: 'turn_009' })).name, 'turnNotFound');
  t.match(await session.refused('thread/fork', { threadId, agent: 'nobody' }), { name: 'agentUnavailable' });

  await session.say(fork.id, 'run: echo new > added.txt');
  await session.until('turn/completed', undefined, 4);
  const race = { number: 1, check: 'true', state: 'passed' } as const;
  await session.call('thread/config/update', { threadId: fork.id, config: { race } });
  t.same((await session.until('thread/raceUpdated', undefined, 1)).race, race);
  const merged = await session.call('thread/merge', { threadId: fork.id });
  t.same((await session.until('thread/raceUpdated', undefined, 2)).race, { ...race, restoreId: merged.restoreId });
  t.match(merged, { restored: ['added.txt'] });
  t.same([read('added.txt'), read('a.txt')], ['new\n', 'turn 2\n']);
  await session.call('checkpoint/restore', { threadId, turnId: merged.restoreId });
  t.notOk(existsSync(join(path, 'added.txt')), 'what was merged is taken back');
  t.same(
    (await session.until('thread/raceUpdated', undefined, 3)).race,
    race,
    'an attempt that was taken back is not applied',
  );
  t.equal((await session.refused('thread/merge', { threadId })).name, 'checkpointFailed');
  const move = { moveId: 'move_0123456789abcdef', threadId };
  t.same(await session.call('thread/move', { step: 'state', ...move }), { state: 'none' });
  t.equal((await session.refused('thread/move', { step: 'commit', ...move })).name, 'moveRefused');

  writeFileSync(join(path, 'added.txt'), 'mine\n');
  const refused = await session.refused('thread/merge', { threadId: fork.id });
  t.match(refused, { name: 'restoreConflict', data: { conflicts: [{ path: 'added.txt', by: 'user' }] } });
  t.equal(read('added.txt'), 'mine\n', 'nothing is overwritten without force');
  const forced = await session.call('thread/merge', { threadId: fork.id, force: true });
  t.match(forced, { restored: ['added.txt'], conflicts: [{ path: 'added.txt' }] });
  t.equal(read('added.txt'), 'new\n');
  await session.call('checkpoint/restore', { threadId, turnId: forced.restoreId });
  t.equal(read('added.txt'), 'mine\n', 'and this is taken back');
});

scenario(
  t,
  'files are not restored when checkpoints are switched off',
  { Checkpoints: { Enabled: false } },
  async (t, { open }) => {
    const session = await open({ ledger });
    const { id: threadId } = (await session.call('thread/start', {})).thread;
    t.match(await session.refused('checkpoint/list', { threadId }), { name: 'checkpointFailed' });
  },
);

scenario(t, 'a turn can be interrupted, steered, and its inputs queued and removed', {}, async (t, { open }) => {
  const session = await open({ ledger });
  const { threadId, turnId } = await session.begin('count to 5000');
  await session.call('thread/subscribe', { threadId });
  await session.until('item/agentMessage/delta');
  t.equal((await session.refused('turn/start', { threadId, input: words('x') })).name, 'turnInProgress');
  t.equal((await session.refused('thread/rollback', { threadId, numTurns: 1 })).name, 'turnInProgress');
  t.equal((await session.refused('thread/archive', { threadId })).name, 'turnInProgress');

  const later = await session.call('turn/enqueue', { threadId, input: words('echo later'), sender: 'device' });
  t.match(later, { queuedInput: { sender: 'device' }, queuedInputs: [{ id: later.queuedInput.id }] });
  t.match(await session.until('thread/queue/updated'), { threadId, queuedInputs: [{ id: later.queuedInput.id }] });
  const never = await session.call('turn/enqueue', { threadId, input: words('echo never') });
  const queuedInputId = never.queuedInput.id;
  const left = await session.call('turn/queue/remove', { threadId, queuedInputId });
  t.match(left, { queuedInputs: [{ id: later.queuedInput.id }] });
  t.equal(left.queuedInputs.length, 1);
  t.equal((await session.refused('turn/queue/remove', { threadId, queuedInputId })).name, 'queuedInputNotFound');

  const expectedTurnId = turnId;
  t.equal(
    (await session.refused('turn/steer', { threadId, expectedTurnId: 'turn_009', input: words('x') })).name,
    'turnNotFound',
  );
  t.equal(
    (await session.refused('turn/steer', { threadId, expectedTurnId, queuedInputId })).name,
    'queuedInputNotFound',
  );
  t.same(await session.call('turn/steer', { threadId, expectedTurnId, queuedInputId: later.queuedInput.id }), {
    turnId,
    queuedInputs: [],
  });

  await session.call('turn/enqueue', { threadId, input: words('echo stays') });
  t.equal((await session.refused('turn/interrupt', { threadId, turnId: 'turn_009' })).name, 'turnNotFound');
  t.same(await session.call('turn/interrupt', { threadId, turnId }), {});
  t.match(await session.until('turn/cancelled'), { turn: { id: turnId, interruptedBy: 'user' } });
  t.equal((await session.refused('turn/interrupt', { threadId, turnId })).name, 'turnNotRunning');
  t.equal(
    (await session.refused('turn/steer', { threadId, expectedTurnId, input: words('x') })).name,
    'turnNotRunning',
  );
  const { thread } = await session.call('thread/read', { threadId });
  t.match(thread.queuedInputs, [{ input: words('echo stays') }], 'nothing starts by itself after an interruption');
});

scenario(t, 'a queued input starts when the turn before it has completed', {}, async (t, { open }) => {
  const session = await open({ ledger });
  const { threadId } = await session.begin('count to 20');
  await session.call('thread/subscribe', { threadId });
  const { queuedInput } = await session.call('turn/enqueue', { threadId, input: words('echo second'), sender: 'me' });
  await session.until('thread/queue/updated', ({ queuedInputs }) => queuedInputs.length === 0);
  const { turn } = await session.until('turn/completed', undefined, 2);
  t.match(spoken(turn), [
    { type: 'userMessage', input: queuedInput.input },
    { type: 'agentMessage', text: /second/ },
  ]);
  const { queuedInputs } = await session.call('turn/enqueue', { threadId, input: words('echo third') });
  t.same(queuedInputs, [], 'with nothing running it starts at once');
  await session.until('turn/completed', undefined, 3);
});

scenario(
  t,
  'regression: a message with the id of an earlier one starts nothing, and the item of the message has its id',
  {},
  async (t, { open }) => {
    const session = await open({ ledger });
    const { threadId } = await session.begin('count to 20');
    await session.call('thread/subscribe', { threadId });
    const message = { threadId, input: words('echo once'), messageId: 'page-1' };
    const { queuedInput } = await session.call('turn/enqueue', message);
    t.equal(queuedInput.messageId, 'page-1');
    const again = await session.call('turn/enqueue', message);
    t.same([again.queuedInput, again.queuedInputs.length <= 1], [queuedInput, true]);
    const { turn } = await session.until('turn/completed', undefined, 2);
    t.match(turn.items, [{ type: 'userMessage', messageId: 'page-1' }]);
    t.match(await session.call('turn/enqueue', message), { queuedInput, queuedInputs: [] });
    const { thread } = await session.call('thread/read', { threadId, includeTurns: true });
    t.equal(thread.turns?.length, 2);
  },
);

scenario(t, 'a steering input reaches the model in the next request of the turn', {}, async (t, { open }) => {
  const session = await open({ ledger });
  const { threadId, turnId } = await session.begin('count to 40');
  await session.until('item/agentMessage/delta');
  await session.call('turn/steer', { threadId, expectedTurnId: turnId, input: words('echo steered') });
  const { turn } = await session.until('turn/completed');
  t.equal(turn.id, turnId);
  t.match(spoken(turn), [
    { type: 'userMessage', input: words('count to 40') },
    { type: 'agentMessage', text: / 40$/ },
    { type: 'userMessage', input: words('echo steered') },
    { type: 'agentMessage', text: /steered/ },
  ]);
});

scenario(t, 'a turn with approvals and client tools sends each kind of item in its schema', {}, async (t, { open }) => {
  const session = await open({
    ledger,
    onApproval: () => new Promise(() => undefined),
    onTool: () => ({ success: true, contentItems: [{ type: 'text', text: 'sunny' }] }),
  });
  const tool = { name: 'weather', description: 'Tells the weather.', inputSchema: { type: 'object' } };
  const { threadId } = await session.begin('think about it\ncall weather {"where": "here"}\nrun: date | tee out', {
    dynamicTools: [tool],
  });
  const { requestId } = await session.approval();
  t.match(await session.call('approval/list', { threadId }), { data: [{ requestId }] });
  await session.call('approval/respond', { requestId, decision: 'accept' });
  await session.until('turn/completed');
  t.match(session.toolCalls, [{ threadId, tool: 'weather', arguments: { where: 'here' } }]);
  t.match(await session.refused('approval/respond', { requestId, decision: 'accept' }), { name: 'approvalNotFound' });
  t.match(await session.refused('thread/start', { dynamicTools: [tool, tool] }), {
    name: 'toolConflict',
    data: { tool: 'weather' },
  });
});

scenario(t, 'a question is listed, refuses an invalid answer, and is answered once', {}, async (t, { open }) => {
  const session = await open({ ledger });
  const options = [{ label: 'red' }, { label: 'blue' }];
  const asked = { questions: [{ header: 'Colour', question: 'Which one?', options }] };
  const { threadId } = await session.begin(`call AskUser ${JSON.stringify(asked)}`);
  const { requestId } = await session.until('question/asked');
  t.match(await session.call('question/list', { threadId }), { data: [{ requestId }] });
  const answer = { requestId, action: 'accept', content: { Colour: 'red' } } as const;
  t.match(await session.refused('question/answer', { ...answer, content: {} }), { name: 'questionInvalid' });
  await session.call('question/answer', answer);
  t.match(await session.until('question/resolved'), { requestId });
  t.match(await session.refused('question/answer', answer), { name: 'questionNotFound' });
  await session.until('turn/completed');
});

scenario(
  t,
  'an approval without an answer is declined after its time limit',
  { Permissions: { ApprovalTimeoutSeconds: 1 } },
  async (t, { open }) => {
    const session = await open({ ledger, onApproval: () => new Promise(() => undefined) });
    await session.begin('run: touch late');
    const { requestId } = await session.approval();
    t.match(await session.until('item/approval/resolved'), { decidedBy: 'timeout' });
    const refusal = await session.refused('approval/respond', { requestId, decision: 'accept' });
    t.match(refusal, { name: 'approvalTimeout', data: { requestId } });
  },
);

scenario(
  t,
  'models are listed, and a failing upstream fails a turn and a compaction',
  { EndPoint: 'http://127.0.0.1:9/v1', Model: 'm', UpstreamRetries: 0 },
  async (t, { open }) => {
    const session = await open({ ledger });
    t.match(await session.call('model/list', {}), { success: false, errorCode: 'upstreamUnreachable' });
    t.match(await session.call('agent/read', {}), { agent: { kind: 'oratorio', state: 'ready' }, limits: [] });
    const { threadId } = await session.begin('hello');
    for (const number of [1, 2, 3, 4]) {
      t.match(await session.until('turn/failed', undefined, number), {
        error: { code: 'upstreamUnreachable' },
        turn: { status: 'failed', items: [{ type: 'userMessage' }, { type: 'error' }] },
      });
      if (number < 4) await session.say(threadId, 'again');
    }
    await session.call('thread/subscribe', { threadId });
    await session.call('thread/compact', { threadId });
    t.match(await session.until('system/event'), { kind: 'compactFailed', message: /127\.0\.0\.1:9/ });
  },
);

scenario(
  t,
  'skills and prompt commands of the workspace are listed, read and expanded',
  {},
  async (t, { open, path }) => {
    const session = await open({ ledger });
    mkdirSync(join(path, '.oratorio', 'skills', 'tidy'), { recursive: true });
    mkdirSync(join(path, '.oratorio', 'commands'));
    const skill = '---\nname: tidy\ndescription: Tidies up.\n---\nSweep.';
    writeFileSync(join(path, '.oratorio', 'skills', 'tidy', 'SKILL.md'), skill);
    writeFileSync(join(path, '.oratorio', 'commands', 'sum.md'), '---\ndescription: Adds.\n---\nAdd $1 and $2.');
    t.match(await session.call('skills/list', {}), { data: [{ name: 'tidy', description: 'Tidies up.' }] });
    t.match(await session.call('skills/read', { name: 'tidy' }), { name: 'tidy', body: /Sweep/ });
    t.match(await session.call('command/list', {}), { data: [{ name: 'sum', description: 'Adds.' }] });
    t.match(await session.call('command/expand', { name: 'sum', arguments: '1 2' }), { text: 'Add 1 and 2.' });
    writeFileSync(join(path, 'notes.md'), '');
    t.strictSame(await session.call('file/search', { query: 'nts' }), { data: ['notes.md'], isComplete: true });
    t.match(await session.refused('file/search', { limit: 51 }), { code: -32602 });
    t.match(await session.refused('skills/read', { name: 'none' }), { name: 'skillNotFound' });
    t.match(await session.refused('command/expand', { name: 'none' }), { name: 'commandNotFound' });
  },
);

scenario(t, 'a background process is listed with its thread, and can be stopped', {}, async (t, { open }) => {
  const session = await open({ ledger, onApproval: accept });
  const { threadId } = await session.begin('call Exec {"command": "echo up; sleep 3200", "background": true}');
  await session.until('turn/completed');
  const { thread } = await session.call('thread/read', { threadId });
  const [running] = thread.backgroundProcesses ?? [];
  t.match(running, { state: 'running', command: 'echo up; sleep 3200', pid: Number });
  const processId = running?.id ?? '';
  await session.call('process/stop', { threadId, processId });
  const { thread: later } = await session.call('thread/read', { threadId, includeTurns: true });
  t.match(later.backgroundProcesses, [{ id: processId, state: 'ended', signal: 'SIGTERM' }]);
  t.match(await session.refused('process/stop', { threadId, processId: 'proc_0' }), {
    name: 'processNotFound',
    data: { threadId, processId: 'proc_0' },
  });
});

scenario(t, 'a read-only thread reads no MCP resource that its input mentions', {}, async (t, { open }) => {
  const session = await open({ ledger });
  const settings = { ...small, enabled: true };
  await session.call('mcp/upsert', { name: 'small', settings });
  const input = words('Review this: @small:demo://none');
  const { thread } = await session.call('thread/start', { config: { readOnly: true } });
  const { turn } = await session.call('turn/start', { threadId: thread.id, input });
  await session.until('turn/completed');
  t.type(turn.id, 'string');
  const { thread: other } = await session.call('thread/start', {});
  t.match(await session.refused('turn/start', { threadId: other.id, input }), { name: 'mcpReferenceFailed' });
  await session.call('mcp/remove', { name: 'small' });
});

t.test('MCP servers can be added, tested, listed and removed', async (t) => {
  const { path, home } = makeWorkspace(t);
  const servers = { users: { ...small, enabled: false } };
  writeFileSync(join(home, 'config.json'), JSON.stringify({ McpServers: servers }));
  const { server } = await startServer(t, undefined, {
    workspacePath: path,
    env: { ...process.env, ORATORIO_HOME: home },
  });
  const session = await Session.open(t, server.webSocketUrl, { ledger, onApproval: accept });
  t.match(await session.call('mcp/list', {}), { data: [{ name: 'users', readOnly: true }] });
  t.match(await session.refused('mcp/upsert', { name: 'users', settings: small }), { name: 'mcpServerReadOnly' });
  t.match(await session.refused('mcp/remove', { name: 'users' }), { name: 'mcpServerReadOnly' });
  t.match(await session.refused('mcp/get', { name: 'none' }), { name: 'mcpServerNotFound' });
  t.match(
    await session.refused('mcp/upsert', { name: 'bad', settings: { ...small, env: { A: '${NOT_SET_ANYWHERE}' } } }),
    {
      name: 'mcpServerInvalid',
    },
  );
  const settings = { ...small, env: { SMALL_TOKEN: 'a-secret-of-mine' } };
  revokeTrust({ home, workspace: path });
  t.match(await session.refused('mcp/upsert', { name: 'small', settings }), { name: 'workspaceRestricted' });
  trustWorkspace({ home, workspace: path });
  t.match(await session.call('mcp/test', { settings }), { success: true, toolCount: Number });
  t.match(await session.call('mcp/upsert', { name: 'small', settings }), {
    server: { name: 'small', readOnly: false, settings: { env: { SMALL_TOKEN: '…' } } },
  });
  await session.until('mcp/status/updated', ({ server }) => server.name === 'small' && server.startupState === 'ready');
  t.match(await session.call('mcp/get', { name: 'small' }), { server: { name: 'small' } });
  t.match(await session.call('mcp/test', { name: 'small' }), { success: true });
  t.match(await session.call('mcp/status/list', {}), {
    data: [
      { name: 'small', startupState: 'ready', lastError: null },
      { name: 'users', startupState: 'disabled' },
    ],
  });
  const auth = await OddAuthServer.start(t);
  await session.call('mcp/upsert', { name: 'odd', settings: { transport: 'streamableHttp', url: auth.url } });
  const statuses = 'mcp/status/updated' as const;
  await session.until(statuses, ({ server }) => server.name === 'odd' && server.startupState === 'needsLogin');
  const pasted = { server: 'odd', redirect: `http://127.0.0.1:9/callback?code=1&state=2` };
  t.match(await session.refused('mcp/login', pasted), { name: 'mcpLoginFailed', data: { problem: /^No log-in is/ } });
  const { url } = await session.call('mcp/login', { server: 'odd' });
  t.match(url, new RegExp(`^${auth.origin}/authorize`));
  t.match(await session.refused('mcp/login', pasted), { data: { problem: /does not belong to this log-in/ } });
  const { headers } = await fetch(url, { redirect: 'manual' });
  const redirect = headers.get('location') ?? '';
  t.same(await session.call('mcp/login', { server: 'odd', redirect }), { url }, 'the token is stored');
  t.equal(auth.seen('/token').length, 1);
  t.match(await session.refused('mcp/login', { server: 'odd', redirect }), { name: 'mcpLoginFailed' }, 'used once');
  await session.call('mcp/logout', { server: 'odd' });
  t.match(await session.refused('mcp/login', { server: 'small' }), { name: 'mcpLoginFailed' });
  const { thread } = await session.call('thread/start', {});
  t.match(await session.refused('turn/start', { threadId: thread.id, input: words('/small:none') }), {
    name: 'mcpReferenceFailed',
    data: { reference: '/small:none' },
  });
  await session.call('mcp/remove', { name: 'odd' });
  await session.call('mcp/remove', { name: 'small' });
  t.match(await session.call('mcp/list', {}), { data: [{ name: 'users' }] });
  const brought = { mine: settings, users: settings };
  t.match(await session.call('thread/mcp/set', { threadId: thread.id, servers: brought }), {
    data: [{ name: 'mine', startupState: 'ready', transport: 'stdio' }],
    configured: ['users'],
  });
  t.same(await session.call('thread/mcp/set', { threadId: thread.id, servers: {} }), { data: [], configured: [] });
  await session.refused('thread/mcp/set', { threadId: 'none', servers: brought });
  t.same(session.faults, []);
  t.notMatch(JSON.stringify(session.heard), 'a-secret-of-mine');
});

t.test('a database that cannot be written', async (t) => {
  const { server, path, log } = await startServer(t);
  const session = await Session.open(t, server.webSocketUrl, { ledger });
  const { thread } = await session.call('thread/start', {});
  const { id: threadId } = thread;
  const other = new DatabaseSync(join(stateOf(path), 'state.db'));
  t.teardown(() => other.close());
  other.exec('BEGIN IMMEDIATE');
  const changes = {
    'thread/start': {},
    'turn/start': { threadId, input: words('x') },
    'thread/rename': { threadId, displayName: 'x' },
    'thread/archive': { threadId },
    'thread/config/update': { threadId, config: {} },
    'thread/rollback': { threadId, numTurns: 1 },
    'thread/delete': { threadId },
  };
  for (const [method, params] of Object.entries(changes)) {
    t.equal((await session.refused(method, params)).name, 'storageFailed', method);
  }
  await session.call('thread/read', { threadId, includeTurns: true });
  other.exec('ROLLBACK');
  await session.say(threadId, 'echo well again');
  t.match((await session.until('turn/completed')).turn, { status: 'completed' });
  t.same(
    log.filter((line) => line.includes('"level":"error"')),
    [],
    'a disk is no bug',
  );
});

scenario(t, 'jobs and tasks can be created, changed, run, read and removed', {}, async (t, { open }) => {
  const session = await open({ ledger });
  const schedule = { kind: 'daily', time: '00:00', timeZone: 'Europe/Berlin' } as const;
  const { job } = await session.call('cron/add', { prompt: 'echo tick', schedule, name: 'nightly' });
  const { id: jobId } = job;
  t.match(job, { state: 'waiting', scheduleText: 'Every day at 00:00 (Europe/Berlin)' });
  t.match((await session.until('cron/stateChanged')).job, { id: jobId });
  t.match(await session.call('cron/list', {}), { jobs: [{ id: jobId }] });
  t.match(await session.call('cron/enable', { jobId, enabled: false }), { job: { state: 'paused' } });
  t.match(await session.call('cron/run', { jobId }), { job: { state: 'running' } });
  await session.until('cron/stateChanged', (update) => update.job.recentRuns[0]?.status === 'completed');

  const { task } = await session.call('automation/task/create', { prompt: 'count to 1000', enabled: false });
  const { id: automationId } = task;
  t.match(await session.call('automation/task/list', {}), { tasks: [{ id: automationId, state: 'paused' }] });
  const renamed = await session.call('automation/update', { automationId, version: 1, change: { name: 'renamed' } });
  t.match(renamed.automation, { name: 'renamed', version: 2 });
  await session.call('automation/run', { automationId });
  t.match(await session.call('automation/cancel', { automationId }), { automation: { id: automationId } });
  await session.until('automation/task/updated', (update) => update.task.recentRuns[0]?.status === 'cancelled');
  t.match(await session.call('automation/read', { automationId }), { automation: { id: automationId } });
  t.match(await session.call('automation/runs', { automationId, limit: 1 }), { data: [{ status: 'cancelled' }] });
  t.match(await session.call('automation/state', {}), { isRunning: true, countsByState: { paused: 2 } });

  t.equal((await session.refused('cron/run', { jobId: 'job_none' })).name, 'automationNotFound');
  t.equal((await session.refused('cron/add', { prompt: 'x' })).name, 'automationInvalid');
  const stale = { automationId, version: 1, change: {} };
  t.match(await session.refused('automation/update', stale), { name: 'automationConflict', data: { version: 2 } });
  t.same(await session.call('automation/delete', { automationId }), { removed: true });
  t.same(await session.call('cron/remove', { jobId }), { removed: true });
  t.match(await session.until('cron/stateChanged', ({ removed }) => removed), { job: { id: jobId } });
});

scenario(
  t,
  'jobs and tasks are refused when automations are disabled',
  { Automations: { Enabled: false } },
  async (t, { open }) => {
    const session = await open({ ledger });
    t.equal((await session.refused('automation/task/create', { prompt: 'x' })).name, 'automationsDisabled');
  },
);

t.test('invalid frames, too many requests and a bug get their errors', async (t) => {
  const models = deferred<never>();
  const { server } = await startServer(t, { ...says('x'), listModels: () => models.promise });
  const raw = await Client.open(t, server.webSocketUrl, 'ws');
  const noteError = ({ error }: { error: { code: number } }) => {
    const [name = 'unknown'] = Object.entries(rpcErrors).find(([, { code }]) => code === error.code) ?? [];
    ledger.errors.add(name);
    return name;
  };
  t.equal(noteError(await raw.ask('thread/list', {})), 'notInitialized');
  for (const [frame, name] of [
    ['{', 'parseError'],
    ['[]', 'invalidRequest'],
  ] as const) {
    const from = raw.messages.length;
    raw.send(frame);
    t.equal(noteError(await raw.until((message) => raw.messages.indexOf(message) >= from, frame)), name);
  }
  const session = await Session.open(t, server.webSocketUrl, { ledger });
  const introduction = { clientInfo: { name: 'again', version: '1' } };
  t.equal((await session.refused('initialize', introduction)).name, 'alreadyInitialized');
  t.equal((await session.refused('no/such/method', {})).name, 'methodNotFound');
  const elsewhere = { config: { workspaceOverride: '/' } };
  t.equal((await session.refused('thread/start', elsewhere)).name, 'workspaceOverrideRefused');
  t.match(await session.refused('thread/read', {}), { name: 'invalidParams', data: { path: 'threadId' } });
  const slow = Array.from({ length: 32 }, () => session.refused('model/list', {}));
  for (const method of ['model/list', 'thread/list', 'turn/start']) {
    t.equal((await session.refused(method, {})).name, 'overloaded', method);
  }
  models.reject(new TypeError('a bug of the provider'));
  for (const { name, message } of await Promise.all(slow)) {
    t.equal(name, 'internalError');
    t.notMatch(message, 'a bug of the provider');
  }
  await session.call('thread/list', {});
});

t.test(
  'a server without a Hub names the next step for a moved or replaced workspace, and writes nothing there',
  async (t) => {
    const { server, path } = await startServer(t);
    const session = await Session.open(t, server.webSocketUrl, { ledger });
    const { thread } = await session.call('thread/start', {});
    const work = { threadId: thread.id, input: words('echo x') };
    const lock = join(path, '.oratorio', 'appserver.lock');
    t.ok(existsSync(lock));
    renameSync(path, `${path}-2`);
    t.match(await session.refused('turn/start', work), {
      name: 'workspaceLost',
      message: /Move it back, or start it in its new place: oratorio up$/,
      data: { kind: 'gone', path },
    });
    t.notOk(existsSync(path));
    mkdirSync(path);
    t.match(await session.refused('turn/start', work), {
      name: 'workspaceLost',
      message: /Restart the server in its terminal, or with: oratorio restart /,
      data: { kind: 'replaced', path },
    });
    t.match(await session.call('thread/list', {}), { data: [{ id: thread.id }] }, 'it answers questions');
    await server.close();
    t.same(readdirSync(path), []);
  },
);

t.test('the parts of an answer that broke off are withdrawn', async (t) => {
  let requests = 0;
  const provider = scripted(async function* () {
    requests += 1;
    yield say(requests === 1 ? 'half an ans' : 'whole');
    if (requests === 1) throw new ModelError('upstreamProtocol', 'cut', { retryAfterMs: 1 });
  });
  const { server } = await startServer(t, provider);
  const session = await Session.open(t, server.webSocketUrl, { ledger });
  await session.begin('go');
  const { itemIds } = await session.until('item/discarded');
  const { turn } = await session.until('turn/completed');
  t.same(
    turn.items.flatMap((item) => (item.type === 'agentMessage' ? [[item.text, itemIds.includes(item.id)]] : [])),
    [
      ['half an ans', true],
      ['whole', false],
    ],
  );
  t.same(session.faults, [], 'everything fits its schema');
});

t.test('the tests of this file cover every method, notification, request and error', async (t) => {
  const missing = (all: object, seen: ReadonlySet<string>) => Object.keys(all).filter((name) => !seen.has(name));
  t.same(missing(rpcMethods, ledger.methods), [], 'methods');
  t.same(missing(rpcNotifications, ledger.notifications), [], 'notifications');
  t.same(missing(serverRequests, ledger.requests), [], 'requests of the server');
  // Only the page's WebSocket refuses methods: test/dashboard/socket.test.ts.
  t.same(missing(rpcErrors, ledger.errors), ['methodNotAllowed'], 'errors');
});
