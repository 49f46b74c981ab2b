/** Questions at an editor with forms, and at one without. */
import type { AgentContext } from '@agentclientprotocol/sdk';
import t from 'tap';
import { askQuestion } from '../../src/acp/questions.ts';
import type { QuestionForm, QuestionRequest } from '../../src/protocol/index.ts';

const request = (question: QuestionForm): QuestionRequest => ({
  ...{ threadId: 't', turnId: 'u', itemId: 'i', requestId: 'question_1', callId: 'c', tool: 'AskUser' },
  ...{ approvalType: 'remoteResource', operation: 'ask', target: 'Which?', scopeKey: 'question' },
  ...{ createdAt: '', expiresAt: '', question },
});
const questions = [
  {
    header: 'Library',
    question: 'Which one?',
    options: [
      { label: 'zod', description: '' },
      { label: 'valibot', description: 'small' },
    ],
  },
  {
    header: 'Tests',
    question: 'Which tests?',
    multiSelect: true,
    options: [
      { label: 'unit', description: '' },
      { label: 'e2e', description: '' },
    ],
  },
];
const ours = request({ source: 'agent', from: 'Oratorio', questions });

/** An editor that answers each request in turn. */
function editor(capabilities: object, ...answers: unknown[]) {
  const seen: [method: string, params: Record<string, unknown>][] = [];
  const client = {
    request: async (method: string, params: Record<string, unknown>) => {
      seen.push([method, params]);
      return answers[seen.length - 1];
    },
  } as unknown as AgentContext;
  return { seen, about: { client, capabilities, sessionId: 's', withdrawn: new AbortController().signal } };
}

t.test('an editor with forms gets one form, with a further field for other words', async (t) => {
  const content = { Library: 'zod', 'Library (own words)': ' superstruct ', Tests: ['unit'] };
  const { seen, about } = editor({ elicitation: { form: {} } }, { action: 'accept', content });
  t.same(await askQuestion(ours, about), { action: 'accept', content: { Library: 'superstruct', Tests: ['unit'] } });
  const [[method, params] = ['', {}]] = seen;
  t.equal(method, 'elicitation/create');
  t.match(params, {
    ...{ mode: 'form', sessionId: 's', toolCallId: 'c' },
    requestedSchema: {
      properties: {
        Library: { type: 'string', oneOf: [{ const: 'zod' }, { const: 'valibot', description: 'small' }] },
        Tests: { type: 'array', items: { anyOf: [{ const: 'unit' }, {}] } },
      },
    },
  });
  for (const [answer, action] of [
    [{ action: 'decline' }, 'decline'],
    [{ action: 'other' }, 'cancel'],
  ] as const)
    t.same(await askQuestion(ours, editor({ elicitation: { form: {} } }, answer).about), { action });
});

t.test(
  'an editor without forms gets a permission request for each question; free fields and links wait for other clients',
  async (t) => {
    const picked = (optionId: string) => ({ outcome: { outcome: 'selected', optionId } });
    const { seen, about } = editor({}, picked('choice-1'), picked('choice-0'));
    t.same(await askQuestion(ours, about), { action: 'accept', content: { Library: 'valibot', Tests: ['unit'] } });
    t.match(seen, [
      [
        'session/request_permission',
        { options: [{ name: 'zod' }, { name: 'valibot' }, { optionId: 'decline', kind: 'reject_once' }] },
      ],
      ['session/request_permission', {}],
    ]);
    t.same(await askQuestion(ours, editor({}, picked('decline')).about), { action: 'decline' });
    t.same(await askQuestion(ours, editor({}, { outcome: { outcome: 'cancelled' } }).about), { action: 'cancel' });
    const form = request({
      source: 'mcp',
      from: 'x',
      schema: { type: 'object', properties: { name: { type: 'string' } }, required: [] },
    });
    t.equal(await askQuestion(form, editor({}).about), undefined);
    const link = request({ source: 'mcp', from: 'x', url: 'https://example.com/' });
    t.equal(await askQuestion(link, editor({ elicitation: { form: {} } }).about), undefined);
    const opened = editor({ elicitation: { url: {} } }, { action: 'accept' });
    t.same(await askQuestion(link, opened.about), { action: 'accept', content: {} });
  },
);
