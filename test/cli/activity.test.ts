import t from 'tap';
import { showActivity } from '../../src/cli/activity.ts';
import { markedPalette } from '../../src/cli/paint.ts';

t.test('a plan is printed step by step with its states, and its call is not', async (t) => {
  const lines: string[] = [];
  const show = showActivity({ note: (line) => lines.push(line), colors: markedPalette(false) });
  const item = (fields: object) => show({ type: 'other', method: 'item/completed', params: { item: fields } });
  const steps = [
    { step: 'read', status: 'completed' },
    { step: 'write', status: 'in_progress' },
    { step: 'test', status: 'pending' },
  ];
  item({ type: 'toolCall', tool: 'UpdatePlan', arguments: JSON.stringify({ plan: steps }) });
  item({ type: 'plan', steps });
  item({ type: 'toolResult', tool: 'UpdatePlan', outcome: 'completed', text: 'The plan is shown.' });
  item({ type: 'toolCall', tool: 'ReadFile', arguments: '{"path":"a.ts"}' });
  t.same(lines, ['  ☑ read', '  ◐ write', '  ☐ test', '▸ ReadFile a.ts']);
});
