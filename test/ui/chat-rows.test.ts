/** Rows of a thread: notifications twice, a clock that was set back, items of a server that knows more. */
import t from 'tap';
import { missingChoices } from '../../src/protocol/browser.ts';
import type { Item, Turn } from '../../src/protocol/index.ts';
import { endRow } from '../../src/ui/views/chat/data/rows.ts';
import { agentOfThread } from '../../src/ui/views/chat/data/thread-agent.ts';
import { Transcript } from '../../src/ui/views/chat/data/transcript.ts';

const base = { turnId: 'turn_1', createdAt: '2026-11-25T12:00:00.000Z', status: 'completed' } as const;
const turn = (items: readonly Item[]): Turn => ({
  id: 'turn_1',
  threadId: 'thread_1',
  status: 'completed',
  startedAt: '2026-11-25T12:00:05.000Z',
  completedAt: '2026-11-25T12:00:00.000Z',
  items: [...items],
});

t.test('a clock that was set back during a turn shows no negative time', async (t) => {
  t.equal(endRow(turn([])).durationMs, 0);
});

t.test('items of a kind that this page does not know are left out, and the others stay', async (t) => {
  const transcript = new Transcript();
  const unknown = { ...base, id: 'item_1', type: 'hologram', data: {} } as unknown as Item;
  const said: Item = { ...base, id: 'item_2', type: 'userMessage', input: [{ type: 'text', text: 'Hello' }] };
  transcript.replace({ turns: [turn([unknown, said])], hasOlderTurns: false });
  t.same(
    transcript.rows.map(({ kind }) => kind),
    ['user', 'end'],
  );
});

t.test('an item that comes twice, or before the reading that contains it, is shown once', async (t) => {
  const transcript = new Transcript();
  const tokenUsage = { inputTokens: 1, outputTokens: 1, totalTokens: 2 };
  const answer: Item = { ...base, id: 'item_3', type: 'agentMessage', text: 'Whole.' };
  const params = { threadId: 'thread_1', turnId: 'turn_1' };
  transcript.take({ method: 'item/started', params: { ...params, item: { ...answer, text: '', status: 'started' } } });
  const delta = { ...params, itemId: 'item_3', deltaKind: 'agentMessage', delta: 'Who' };
  transcript.take({ method: 'item/agentMessage/delta', params: delta });
  for (let times = 0; times < 2; times += 1) {
    transcript.take({ method: 'item/completed', params: { ...params, item: answer } });
    transcript.take({ method: 'item/agentMessage/delta', params: delta });
    transcript.take({ method: 'turn/completed', params: { threadId: 'thread_1', turn: turn([answer]), tokenUsage } });
  }
  t.match(transcript.rows, [{ kind: 'answer', text: 'Whole.', isStreaming: false }, { kind: 'end' }]);
  t.equal(transcript.rows.length, 2);
});

t.test('a part of an answer that broke off is shown as withdrawn, at once and when the thread is read', async (t) => {
  const transcript = new Transcript();
  const params = { threadId: 'thread_1', turnId: 'turn_1' };
  const half: Item = { ...base, id: 'item_3', type: 'agentMessage', text: 'Half' };
  const whole: Item = { ...base, id: 'item_5', type: 'agentMessage', text: 'Whole.' };
  for (const item of [half, whole]) transcript.take({ method: 'item/completed', params: { ...params, item } });
  transcript.take({ method: 'item/discarded', params: { ...params, itemIds: ['item_3'] } });
  const shown = [
    { text: 'Half', isWithdrawn: true },
    { text: 'Whole.', isWithdrawn: false },
  ];
  t.match(transcript.rows, shown);
  transcript.replace({ turns: [turn([{ ...half, discarded: true }, whole])], hasOlderTurns: false });
  t.match(transcript.rows, shown);
});

t.test('a call of a later turn with the id of an earlier one has a row of its own', async (t) => {
  const transcript = new Transcript();
  const call = (id: string, command: string): Item => ({
    ...base,
    id: `item_${id}`,
    turnId: id,
    type: 'toolCall',
    callId: 'call_1',
    tool: 'Exec',
    source: 'builtin',
    arguments: JSON.stringify({ command }),
  });
  const turns = [call('turn_1', 'ls'), call('turn_2', 'pwd')].map((item) => ({ ...turn([item]), id: item.turnId }));
  transcript.replace({ turns, hasOlderTurns: false });
  t.match(transcript.tool('turn_1', 'call_1'), { argumentsText: '{"command":"ls"}' });
  t.match(transcript.tool('turn_2', 'call_1'), { argumentsText: '{"command":"pwd"}' });
});

t.test('an agent that has not run yet is said to name its choices later, and one that has none is not', async (t) => {
  const codex = { kind: 'acp', name: 'codex', state: 'absent' };
  t.equal(missingChoices(codex, 0), 'codex names its models and modes in its first turn.');
  t.equal(missingChoices(codex, 1), undefined, 'known from before');
  t.equal(missingChoices({ ...codex, state: 'ready' }, 0), undefined, 'it has none');
  t.equal(missingChoices({ ...codex, kind: 'oratorio' }, 0), undefined, 'our own agent');
});

t.test('a thread shows the agent that it names, else that of its workspace', async (t) => {
  const codex = { kind: 'acp', name: 'codex', version: '2.6.0', state: 'ready', approvals: 'asks' } as const;
  const own = { ...codex, kind: 'oratorio', name: 'oratorio' } as const;
  t.same(agentOfThread(codex, {}), { agent: codex, isOfWorkspace: true });
  t.same(agentOfThread(codex, { agent: 'codex' }), { agent: codex, isOfWorkspace: true });
  t.same(agentOfThread(codex, { agent: 'oratorio' }), { agent: null, isOfWorkspace: false });
  t.match(agentOfThread(own, { agent: 'pi' }), { agent: { name: 'pi', approvals: 'none' }, isOfWorkspace: false });
  t.same(agentOfThread(own, {}), { agent: null, isOfWorkspace: true });
  t.same(agentOfThread(null, {}), { agent: null, isOfWorkspace: true }, 'not known yet');
});
