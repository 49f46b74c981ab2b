import t from 'tap';
import { showActivity } from '../../src/cli/activity.ts';
import { markedPalette } from '../../src/cli/paint.ts';

t.test('a plan is printed step by step with its states, and its call is not', async (t) => {
  const lines: string[] = [];
  const show = showActivity({ note: (line) => lines.push(line), colors: markedPalette(false), width: 60 });
  const item = (fields: object) => show({ type: 'other', method: 'item/completed', params: { item: fields } });
  const steps = [
    { step: 'read', status: 'completed' },
    { step: 'write', status: 'in_progress' },
    { step: 'test', status: 'pending' },
  ];
  item({ type: 'toolCall', tool: 'UpdatePlan', arguments: JSON.stringify({ plan: steps }) });
  item({ type: 'plan', steps });
  item({ type: 'toolResult', tool: 'UpdatePlan', outcome: 'completed', text: 'The plan is shown.' });
  item({ type: 'toolCall', callId: 'c', tool: 'SpawnSubagent', arguments: '{"task":"look"}' });
  t.same(lines, ['  ☑ read', '  ◐ write', '  ☐ test', '▸ SpawnSubagent look']);
});

t.test(
  'a resumed turn is announced once for each resumption, and unknown outcomes are left to its notice',
  async (t) => {
    const lines: string[] = [];
    const show = showActivity({ note: (line) => lines.push(line), colors: markedPalette(false), width: 60 });
    const started = (resumes: number | undefined) =>
      show({ type: 'other', method: 'turn/started', params: { turn: { resumes, items: [{ outcome: 'unknown' }] } } });
    started(undefined);
    t.same(lines, []);
    started(1);
    started(1);
    started(2);
    const line = '↻ The agent server was restarted; this turn goes on.';
    t.same(lines, [line, line]);
  },
);

t.test('regression: a list in the arguments of a call is printed as JSON', async (t) => {
  const lines: string[] = [];
  const show = showActivity({ note: (line) => lines.push(line), colors: markedPalette(false), width: 60 });
  const args = JSON.stringify({ path: 'a.ts', limit: 5, names: [{ a: 1 }] });
  const item = { type: 'toolCall', callId: 'a', tool: 'SpawnSubagent', arguments: args };
  show({ type: 'other', method: 'item/completed', params: { item } });
  t.same(lines, ['▸ SpawnSubagent a.ts 5 [{"a":1}]']);
});

t.test('a withdrawn answer is named once, a withdrawn thought is not', async (t) => {
  const lines: string[] = [];
  const show = showActivity({ note: (line) => lines.push(line), colors: markedPalette(false), width: 60 });
  const discard = (...itemIds: string[]) => show({ type: 'other', method: 'item/discarded', params: { itemIds } });
  show({ type: 'reasoning', itemId: 'item_1', text: 'hm' });
  discard('item_1');
  t.same(lines, []);
  show({ type: 'message', itemId: 'item_2', text: 'half' });
  discard('item_1', 'item_2');
  t.same(lines, ['· The unfinished answer above is withdrawn.']);
});

t.test('regression: a call that may need approval is announced once, when it runs', async (t) => {
  const lines: string[] = [];
  const show = showActivity({ note: (line) => lines.push(line), colors: markedPalette(false), width: 60 });
  const item = (method: 'item/started' | 'item/completed', fields: object) =>
    show({ type: 'other', method, params: { item: fields } });
  item('item/completed', { type: 'toolCall', callId: 'a', tool: 'Exec', arguments: '{"command":"ls"}' });
  t.same(lines, [], 'the question comes first');
  item('item/started', { type: 'commandExecution', callId: 'a' });
  item('item/completed', { type: 'commandExecution', callId: 'a' });
  item('item/completed', { type: 'toolResult', callId: 'a', tool: 'Exec', outcome: 'completed', text: 'file' });
  item('item/completed', { type: 'toolCall', callId: 'b', tool: 'WriteFile', arguments: '{"path":"a"}' });
  item('item/completed', { type: 'toolResult', callId: 'b', tool: 'WriteFile', outcome: 'declined', text: 'no' });
  t.same(lines, ['▸ Exec ls', '  ✓ file (0 ms)', '▸ WriteFile a', '  – no (0 ms)'], 'a declined call has not failed');
});

t.test('the whole reason of a refusal is shown, wrapped, and of other results the first line', async (t) => {
  const lines: string[] = [];
  const show = showActivity({ note: (line) => lines.push(line), colors: markedPalette(false), width: 44 });
  const result = (outcome: string, text: string) => {
    const item = { type: 'toolResult', callId: 'a', tool: 'Exec', outcome, text, durationMs: 3 };
    show({ type: 'other', method: 'item/completed', params: { item } });
  };
  const reason = `deploys need a ticket in the branch name, see CONTRIBUTING.md\n\n  ${'x'.repeat(50)}\nthen push`;
  result('failed', `Error: refused by a hook of the user: ${reason}`);
  t.same(lines, [
    '  ✖ Error: refused by a hook of the user:',
    '    deploys need a ticket in the branch',
    '    name, see CONTRIBUTING.md',
    `    ${'x'.repeat(40)}`,
    `    ${'x'.repeat(10)}`,
    '    then push (3 ms)',
  ]);
  result('failed', `Error: ${'y'.repeat(200)}\nmore`);
  t.match(lines.at(-1), /^ {2}✖ Error: y+… \(3 ms\)$/, 'control: a failure stays one line');
});
