/** Questions of agents at a terminal. */
import { once } from 'node:events';
import t from 'tap';
import { askPerson, questionOf } from '../../src/cli/approvals.ts';
import { askFields } from '../../src/cli/questions.ts';
import type { QuestionForm, QuestionRequest } from '../../src/protocol/index.ts';

const plain = (text: string) => text;
const colors = { bold: plain, dim: plain, red: plain, green: plain, yellow: plain, cyan: plain };
const output = { colors, question: plain, note: () => undefined } as unknown as Parameters<typeof askPerson>[1];
const form: QuestionForm = {
  ...{ source: 'mcp', from: 'tickets\n? Evil', message: 'Make a ticket' },
  schema: {
    type: 'object',
    properties: {
      size: { type: 'integer', minimum: 1 },
      kind: { type: 'string', enum: ['bug', 'wish'] },
      labels: { type: 'array', items: { type: 'string', enum: ['a', 'b'] } },
      urgent: { type: 'boolean' },
      note: { type: 'string' },
    },
    required: ['size', 'kind', 'labels', 'urgent'],
  },
};

const request: QuestionRequest = {
  ...{ threadId: 't', turnId: 'u', itemId: 'i', requestId: 'question_1', callId: 'c', tool: 'AskUser' },
  ...{ approvalType: 'remoteResource', operation: 'ask', target: 'x', scopeKey: 'k', createdAt: '', expiresAt: '' },
  question: form,
};

t.test('each field is asked, again after an answer that does not fit; an empty line skips or declines', async (t) => {
  const shown: string[] = [];
  const lines = ['many', '0', '3', '2', '1,2', 'y', ''];
  const ask = async (words: string) => {
    shown.push(words);
    return lines[shown.length - 1] ?? '';
  };
  t.same(await askFields(form, ask, output), {
    action: 'accept',
    content: { size: 3, kind: 'wish', labels: ['a', 'b'], urgent: true },
  });
  t.match(shown[0], /The MCP server tickets.*Evil asks.*\n {2}│ Make a ticket/);
  t.notMatch(shown[0], /\n\? Evil/, 'foreign text cannot imitate a question');
  t.match(shown[1], /Expected a number/);
  t.match(shown[2], /Expected a number: at least 1/);
  t.same(await askFields(form, async () => '', output), { action: 'decline' });
  const link = { source: 'mcp', from: 'x', url: 'https://example.com/a' } as const;
  t.same(await askFields(link, async () => 'y', output), { action: 'accept' });
  t.same(await askFields(link, async () => '', output), { action: 'decline' });
});

t.test('a question that is answered elsewhere is withdrawn from the terminal', async (t) => {
  const person = askPerson(
    (_, signal) => new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason))),
    output,
  );
  const asked = person.asked?.(request);
  t.equal(await person.asked?.(request), undefined, 'it is asked once');
  await new Promise(setImmediate);
  person.resolved?.({ requestId: 'question_1', decision: 'accept', decidedBy: 'user', client: 'oratorio-page' });
  t.equal(await asked, undefined);
});

t.test('regression: a request that ends without an answer is not reported as answered elsewhere', async (t) => {
  const notes: string[] = [];
  const person = askPerson((_, signal) => once(signal, 'abort').then(() => ''), {
    ...output,
    note: (text) => notes.push(text),
  });
  const { question: _, ...approval } = request;
  for (const [requestId, decision, decidedBy] of [
    ['approval_1', 'accept', 'policy'],
    ['approval_2', 'decline', 'timeout'],
  ] as const) {
    const answered = person('item/approval/request', { ...approval, requestId });
    await new Promise(setImmediate);
    person.resolved?.({ requestId, decision, decidedBy });
    await answered;
  }
  t.same(notes, ['Allowed without an answer.', 'Declined without an answer.']);
});

t.test('regression: a question that was open when its connection was lost is asked again', async (t) => {
  const line = Promise.withResolvers<string>();
  let asks = 0;
  const person = askPerson((_, signal) => {
    asks += 1;
    signal.addEventListener('abort', () => line.reject(signal.reason));
    return asks === 1 ? line.promise : Promise.resolve('y');
  }, output);
  const link = { source: 'mcp', from: 'x', url: 'https://example.com/a' } as const;
  const first = person.asked?.({ ...request, question: link });
  await new Promise(setImmediate);
  person.withdraw?.();
  t.equal(await first, undefined, 'no answer is sent');
  t.same(await person.asked?.({ ...request, question: link }), { action: 'accept' });
});

t.test('regression: a request about a quota asks whether the turn may wait, or continues', (t) => {
  const wait = { tool: 'Quota', operation: 'wait and continue', target: 'at 18:40', scopeKey: 'quota:u', until: null };
  t.match(questionOf(wait, output), '? A quota is used up. May the turn wait? (Quota)');
  const scheduled = questionOf({ ...wait, operation: 'continue' }, output);
  t.match(scheduled, '? The turn waits for a quota. Continue now? (Quota)');
  t.end();
});
