/** Questions of our agent, of tools that run, and the limits of both. */
import t from 'tap';
import { type ModelProvider, openStore, type Tool, type TurnOptions } from '../../../src/agent/index.ts';
import { createAskUser } from '../../../src/agent/tools/ask-user.ts';
import { defaults, type QuestionAnswer, type QuestionForm } from '../../../src/protocol/index.ts';
import { temporaryDirectory } from '../../hub/harness.ts';
import { answers, call, listening, say, service, text, tool } from '../helpers.ts';

const asked = {
  questions: [
    {
      ...{ header: 'Library', question: 'Which library do you want?' },
      options: [{ label: 'valibot', description: 'small' }, { label: 'zod' }],
    },
    {
      ...{ header: 'Tests', question: 'Which tests?', multiSelect: true },
      options: [{ label: 'unit' }, { label: 'e2e' }],
    },
  ],
};
const asks = (args: unknown = asked) => answers([call('q1', 'AskUser', args)], [say('done')]);

function start(provider: ModelProvider, tools: readonly Tool[], options: TurnOptions = {}) {
  const { runtime } = service(provider, { tools: () => tools });
  const { thread } = runtime.threads.start({});
  const ear = listening();
  runtime.turns.start(thread.id, text('go'), ear.listener, options).begin();
  const result = async () => {
    const { turn } = (await ear.until('turn/completed')).params;
    return turn.items.flatMap((item) => (item.type === 'toolResult' ? [item] : []));
  };
  return { runtime, thread, ear, result };
}

t.test('a question makes the turn wait like an approval; the checked answer is the result of the call', async (t) => {
  const { runtime, thread, ear, result } = start(asks(), [createAskUser()]);
  const { params: request } = await ear.until('question/asked');
  const { requestId } = request;
  t.match(requestId, /^question_/);
  t.match(request, { tool: 'AskUser', operation: 'ask', target: /Which library do you want\?/ });
  t.match(request.question, {
    source: 'agent',
    from: 'Oratorio',
    questions: [{ header: 'Library' }, { multiSelect: true }],
  });
  t.match(runtime.threads.read(thread.id, { includeTurns: true }).turns, [
    { status: 'waitingApproval', items: [{}, {}, { type: 'question', status: 'started', state: 'open', requestId }] },
  ]);
  const invalid: [QuestionAnswer['content'], string][] = [
    [undefined, 'Library: An answer is missing.'],
    [{ Library: 'zod' }, 'Tests: An answer is missing.'],
    [{ Library: ['zod'], Tests: ['unit'] }, 'Library: Expected one choice.'],
    [{ Library: 'zod', Tests: ['unit', 'unit'] }, 'Tests: A choice is repeated.'],
    [{ Library: 'zod', Tests: 'unit', Stray: 'x' }, 'Stray: The question has no such field, only: Library, Tests.'],
  ];
  for (const [content, detail] of invalid) {
    t.throws(() => runtime.turns.answer(requestId, { action: 'accept', content }), {
      name: 'AgentError',
      reason: 'questionInvalid',
      detail,
    });
  }
  t.throws(() => runtime.turns.respond(requestId, 'accept'), { name: 'AgentError', reason: 'questionInvalid' });
  t.equal(runtime.turns.approvals().length, 1, 'an invalid answer leaves the question open');
  const content = { Library: 'zod', Tests: ['unit', 'one of my own'] };
  runtime.turns.answer(requestId, { action: 'accept', content }, 'a page');
  t.throws(() => runtime.turns.answer(requestId, { action: 'accept', content }), {
    name: 'AgentError',
    reason: 'questionNotFound',
    data: { decision: 'accept', client: 'a page' },
  });
  t.match(await result(), [
    { outcome: 'completed', text: 'The user answered:\nLibrary: zod\nTests: unit, one of my own' },
  ]);
  const { params } = await ear.until('question/resolved');
  t.match(params, { requestId, state: 'answered', decision: 'accept', decidedBy: 'user', client: 'a page' });
  const [turn] = runtime.threads.read(thread.id, { includeTurns: true }).turns ?? [];
  const item = { type: 'question', status: 'completed', state: 'answered', answers: content, client: 'a page' };
  t.match(
    turn?.items.filter(({ type }) => type === 'question'),
    [item],
  );
});

t.test('a question without an answer ends with words for the model, and the turn continues', async (t) => {
  const ends = [
    { options: { approvalPolicy: 'interrupt' }, text: /^No user can answer; decide yourself and say which assumption/ },
    { options: { approvalPolicy: 'autoApprove', isUnattended: true }, text: /^No user can answer/ },
    { options: { approvalTimeoutMs: 1 }, text: /^No answer came in time/, state: 'expired' },
    { options: {}, action: 'decline', text: /^The user declined to answer/, state: 'declined' },
    { options: { approvalPolicy: 'autoApprove' }, action: 'cancel', text: /^The user declined/, state: 'cancelled' },
  ] as const;
  for (const end of ends) {
    const { runtime, ear, result } = start(asks(), [createAskUser()], end.options);
    if ('action' in end) {
      const { requestId } = (await ear.until('question/asked')).params;
      runtime.turns.answer(requestId, { action: end.action });
    }
    t.match(await result(), [{ outcome: 'declined', text: end.text }]);
    if ('state' in end) t.equal((await ear.until('question/resolved')).params.state, end.state);
    else
      t.notOk(
        ear.events.some(({ method }) => method.startsWith('question/')),
        'no user was asked',
      );
  }
});

t.test('a call that asks for a secret, or for too much, is refused with words', async (t) => {
  const [first] = asked.questions;
  const faults: [unknown, RegExp][] = [
    [{ questions: [{ ...first, header: 'API key' }] }, /never asks for a secret/],
    [{ questions: [{ ...first, header: 'Password' }] }, /never asks for a secret/],
    [{ questions: [{ ...first, header: 'Thirteen char' }] }, /at most 12 characters/],
    [{ questions: [{ ...first, options: [{ label: 'only' }] }] }, /2 to 4 options/],
    [{ questions: [first, first] }, /different headers/],
    [{ questions: [] }, /1 to 4 questions/],
  ];
  for (const [args, problem] of faults) {
    const { result } = start(asks(args), [createAskUser()]);
    t.match(await result(), [{ outcome: 'failed', text: problem }]);
  }
});

const form: QuestionForm = {
  ...{ source: 'mcp', from: 'tickets', message: 'Create a ticket' },
  schema: { type: 'object', properties: { title: { type: 'string', minLength: 3 } }, required: ['title'] },
};

t.test('a running tool asks: answered once, withdrawn, bounded in number, expired', async (t) => {
  const heard: QuestionAnswer[] = [];
  const withdrawal = new AbortController();
  const never = new AbortController().signal;
  const nagging = (signals: readonly (readonly AbortSignal[])[]) =>
    tool({
      name: 'Nag',
      isReadOnly: true,
      async run(_, { elicit }) {
        const ask = async (withdrawn: AbortSignal) =>
          heard.push((await elicit?.(form, withdrawn)) ?? { action: 'cancel' });
        for (const group of signals) await Promise.all(group.map(ask));
        return { text: 'nagged', isError: false };
      },
    });
  const provider = () => answers([call('n1', 'Nag')], [say('done')]);
  const many = Array(defaults.questions.openPerTurn + 2).fill(never);
  const { runtime, ear, result } = start(provider(), [nagging([[never], [withdrawal.signal], many])]);
  const { requestId } = (await ear.until('question/asked')).params;
  t.throws(() => runtime.turns.answer(requestId, { action: 'accept', content: { title: 'x' } }), {
    name: 'AgentError',
    detail: 'title: Expected at least 3 characters.',
  });
  runtime.turns.answer(requestId, { action: 'accept', content: { title: 'A title' } });
  await ear.until('question/asked', 2);
  withdrawal.abort();
  await ear.until('question/asked', many.length);
  for (const request of runtime.turns.approvals()) runtime.turns.answer(request.requestId, { action: 'decline' });
  t.match(await result(), [{ text: 'nagged' }]);
  t.same(heard.slice(0, 4), [
    { action: 'accept', content: { title: 'A title' } },
    ...Array(3).fill({ action: 'cancel' }),
  ]);
  t.same(heard.slice(4), Array(defaults.questions.openPerTurn).fill({ action: 'decline' }));

  heard.length = 0;
  // The deadline of a question keeps no process.
  const alive = setInterval(() => undefined, 1_000);
  t.teardown(() => clearInterval(alive));
  const late = start(provider(), [nagging([[never]])], { approvalTimeoutMs: 1 });
  await late.result();
  t.same(heard, [{ action: 'decline' }]);
  t.match((await late.ear.until('question/resolved')).params, { state: 'expired', decidedBy: 'timeout' });
});

t.test('a tool that asks for ever gets its answers up to the limit of a turn, then none from a user', async (t) => {
  const { perTurn } = defaults.questions;
  const actions: string[] = [];
  const endless = tool({
    name: 'Nag',
    isReadOnly: true,
    async run(_, { elicit }) {
      for (let asked = 0; asked < 10 * perTurn; asked += 1)
        actions.push((await elicit?.(form, new AbortController().signal))?.action ?? 'none');
      return { text: 'nagged', isError: false };
    },
  });
  const { runtime, ear, result } = start(answers([call('n1', 'Nag')], [say('done')]), [endless]);
  for (let asked = 1; asked <= perTurn; asked += 1) {
    const { requestId } = (await ear.until('question/asked', asked)).params;
    runtime.turns.answer(requestId, { action: 'decline' });
  }
  await result();
  t.same(actions, [...Array(perTurn).fill('decline'), ...Array(9 * perTurn).fill('cancel')]);
});

t.test('a question survives the end of its process under the same id, and is answered in the next one', async (t) => {
  const directory = temporaryDirectory(t);
  const first = openStore(directory);
  const ended: { stop(): unknown }[] = [];
  const tools = () => [createAskUser()];
  const dying = service(asks(), {
    ...{ store: first.threads, traces: first.traces, tools },
    observe: (actor) => ended.push(actor),
  });
  const { thread } = dying.runtime.threads.start({});
  const ear = listening();
  dying.runtime.turns.start(thread.id, text('go'), ear.listener).begin();
  const { params: request } = await ear.until('question/asked');
  for (const actor of ended) actor.stop();
  first.close();

  const second = openStore(directory);
  t.teardown(() => second.close());
  const { runtime } = service(answers([say('done')]), { store: second.threads, traces: second.traces, tools });
  const { question } = request;
  t.match(runtime.turns.approvals(), [{ requestId: request.requestId, question, createdAt: request.createdAt }]);
  const next = listening();
  runtime.threads.subscribe(thread.id, next.listener);
  runtime.turns.answer(request.requestId, { action: 'accept', content: { Library: 'zod', Tests: ['unit'] } });
  runtime.resume();
  const { turn } = (await next.until('turn/completed')).params;
  t.match(
    turn.items.filter(({ type }) => type === 'toolResult'),
    [{ outcome: 'completed', text: /Library: zod/ }],
  );
  t.match(
    turn.items.filter(({ type }) => type === 'question'),
    [{ requestId: request.requestId, state: 'answered' }],
  );
});
