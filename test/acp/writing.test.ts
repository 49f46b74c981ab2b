/** Calls while the model is still writing them. */
import t from 'tap';
import { hangsInCall, says, scripted, writes } from '../agui/model.ts';
import { eventually } from '../http/support.ts';
import { choose, inSession, surroundings } from './harness.ts';

t.test('a call is sent when it begins, and again with its arguments', async (t) => {
  const call = { callId: 'w1', name: 'WriteFile' };
  const where = await surroundings(
    t,
    scripted(writes(call, '{"path": "a.', 'txt", "content"', ': "hello"}'), says('Written.')),
  );
  const editor = await inSession(t, where, { permit: () => choose('accept') });
  t.match(await editor.prompt('write'), { stopReason: 'end_turn' });
  t.strictSame(editor.of('tool_call'), [
    {
      sessionUpdate: 'tool_call',
      toolCallId: 'w1',
      name: 'WriteFile',
      status: 'pending',
      title: 'Write',
      kind: 'edit',
    },
  ]);
  const updates = editor.of('tool_call_update');
  t.match(updates[0], {
    toolCallId: 'w1',
    status: 'pending',
    title: 'Write a.txt',
    rawInput: { path: 'a.txt', content: 'hello' },
    content: [{ type: 'diff', newText: 'hello' }],
  });
  t.match(updates.at(-1), { toolCallId: 'w1', status: 'completed' });
});

t.test('an unfinished call has failed when its turn ends', async (t) => {
  const where = await surroundings(t, scripted(hangsInCall({ callId: 'w1', name: 'WriteFile' }, '{"pa'), says('hi')));
  const editor = await inSession(t, where);
  const prompt = editor.prompt('write');
  await eventually(() => editor.of('tool_call').length > 0, 'the call is told');
  t.strictSame(editor.of('tool_call_update'), []);
  await editor.agent.notify('session/cancel', { sessionId: editor.sessionId });
  t.match(await prompt, { stopReason: 'cancelled' });
  t.match(editor.of('tool_call_update'), [{ toolCallId: 'w1', status: 'failed' }]);
  t.match(await editor.prompt('again'), { stopReason: 'end_turn' });
  t.equal(editor.of('tool_call_update').length, 1);
});
