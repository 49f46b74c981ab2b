import t from 'tap';
import { createActor, fromPromise, SimulatedClock } from 'xstate';
import { type Inference, type ToolRun, type TurnEmitted, turnFailureOf, turnMachine } from '../../machines/turn.ts';
import { flush, transitionLog, transitionNames } from './harness.ts';

const everTaken = new Set<string>();
const approvalTimeoutMs = 300_000;
const graceMs = 5_000;

interface Question<T> {
  resolve(value: T): void;
  reject(error: unknown): void;
  isAborted(): boolean;
}

/** The machine with actors that wait for the test, on a clock that the test moves. */
function begin(maxRounds = 10) {
  const clock = new SimulatedClock();
  const open = new Map<string, Question<never>>();
  const asked: string[] = [];
  const emitted: TurnEmitted[] = [];
  const taken: string[] = [];
  const wait = <T>(name: string) =>
    fromPromise<T, { threadId: string; turnId: string }>(({ input, signal }) => {
      asked.push(`${name} ${input.threadId} ${input.turnId}`);
      return new Promise((resolve, reject) => {
        open.set(name, { resolve, reject, isAborted: () => signal.aborted } as unknown as Question<never>);
      });
    });
  const machine = turnMachine.provide({
    actors: {
      prepare: wait<{ readonly isTooLong: boolean }>('prepare'),
      compact: wait<void>('compact'),
      infer: wait<Inference>('infer'),
      review: wait<{ readonly pending: readonly string[] }>('review'),
      runTools: wait<ToolRun>('runTools'),
      settle: wait<void>('settle'),
    },
  });
  const actor = createActor(machine, {
    clock,
    input: { threadId: 'thread', turnId: 'turn_001', maxRounds },
    inspect: transitionLog(taken, () => true),
  });
  actor.on('*', (event) => emitted.push(event));
  actor.start();
  const settle = async (name: string, how: (question: Question<never>) => void) => {
    const question = open.get(name);
    if (!question) throw new Error(`${name} was not asked for`);
    open.delete(name);
    how(question);
    await flush();
    for (const each of taken) everTaken.add(each);
  };
  return {
    actor,
    clock,
    asked,
    emitted,
    value: () => actor.getSnapshot().value,
    isAborted: (name: string) => open.get(name)?.isAborted(),
    answer: (name: string, value?: unknown) => settle(name, (question) => question.resolve(value as never)),
    fail: (name: string, error: unknown) => settle(name, (question) => question.reject(error)),
    async send(event: Parameters<typeof actor.send>[0]) {
      actor.send(event);
      await flush();
      for (const each of taken) everTaken.add(each);
    },
    async pass(ms: number) {
      clock.increment(ms);
      await flush();
      for (const each of taken) everTaken.add(each);
    },
  };
}

type Turn = ReturnType<typeof begin>;

const answerOf = (over: Partial<Inference> = {}): Inference => ({
  tokens: { inputTokens: 3, outputTokens: 5 },
  calls: 0,
  clientCalls: 0,
  isSteered: false,
  finish: 'stop',
  ...over,
});
const kinds = ({ emitted }: Turn) => emitted.map(({ type }) => type.replace('turn.', ''));
const failure = Object.assign(new Error('no such model'), { code: 'upstreamRejected' });
const tooLong = Object.assign(new Error('too long'), { code: 'contextTooLong' });

/** A turn that has got to this state. */
const at = {
  async preparing(maxRounds?: number) {
    return begin(maxRounds);
  },
  async compacting() {
    const turn = begin();
    await turn.answer('prepare', { isTooLong: true });
    return turn;
  },
  async inferring(maxRounds?: number) {
    const turn = begin(maxRounds);
    await turn.answer('prepare', { isTooLong: false });
    return turn;
  },
  async reviewing() {
    const turn = await at.inferring();
    await turn.answer('infer', answerOf({ calls: 2 }));
    return turn;
  },
  async awaitingApproval(pending: readonly string[] = ['one', 'two']) {
    const turn = await at.reviewing();
    await turn.answer('review', { pending });
    return turn;
  },
  async runningTools(over: Partial<Inference> = {}) {
    const turn = await at.inferring();
    await turn.answer('infer', answerOf({ calls: 1, ...over }));
    await turn.answer('review', { pending: [] });
    return turn;
  },
};

t.test('a turn without tools goes preparing → inferring → completed', async (t) => {
  const turn = await at.inferring();
  t.equal(turn.value(), 'inferring');
  await turn.answer('infer', answerOf());
  t.equal(turn.value(), 'completed');
  t.same(turn.asked, ['prepare thread turn_001', 'infer thread turn_001']);
  t.same(turn.emitted, [{ type: 'turn.completed', tokens: { inputTokens: 3, outputTokens: 5 }, finish: 'stop' }]);
});

t.test('a thread that is too long is compacted first', async (t) => {
  const turn = await at.compacting();
  t.equal(turn.value(), 'compacting');
  await turn.answer('compact');
  t.equal(turn.value(), 'inferring');
});

t.test('a context refused as too long is compacted once, then the turn fails', async (t) => {
  const turn = await at.inferring();
  await turn.fail('infer', tooLong);
  t.equal(turn.value(), 'compacting');
  await turn.answer('compact');
  await turn.fail('infer', tooLong);
  t.equal(turn.value(), 'failed');
  t.match(turn.emitted.at(-1), { type: 'turn.failed', failure: { code: 'contextTooLong' } });
});

for (const [state, work] of [
  ['preparing', 'prepare'],
  ['compacting', 'compact'],
  ['inferring', 'infer'],
  ['reviewing', 'review'],
  ['runningTools', 'runTools'],
] as const) {
  t.test(`${state} → failed when ${work} gives an error`, async (t) => {
    const turn = await at[state]();
    t.equal(turn.value(), state);
    await turn.fail(work, failure);
    t.equal(turn.value(), 'failed');
    t.same(turn.emitted.at(-1), {
      type: 'turn.failed',
      failure: { code: 'upstreamRejected', message: 'no such model' },
    });
  });
}

t.test('tool results are sent in the next round, and tokens are summed', async (t) => {
  const turn = await at.runningTools();
  t.equal(turn.value(), 'runningTools');
  await turn.answer('runTools', { isLooping: false });
  t.equal(turn.value(), 'inferring');
  await turn.answer('infer', answerOf());
  t.same(turn.emitted, [{ type: 'turn.completed', tokens: { inputTokens: 6, outputTokens: 10 }, finish: 'stop' }]);
});

t.test('every pending approval must be decided before tools run', async (t) => {
  const turn = await at.awaitingApproval();
  t.equal(turn.value(), 'awaitingApproval');
  t.same(kinds(turn), ['waiting']);
  await turn.send({ type: 'DECIDED', requestId: 'two' });
  await turn.send({ type: 'DECIDED', requestId: 'unknown' });
  t.equal(turn.value(), 'awaitingApproval');
  await turn.send({ type: 'DECIDED', requestId: 'one' });
  t.equal(turn.value(), 'runningTools');
  t.same(kinds(turn), ['waiting', 'resumed']);
});

t.test('open approvals expire at the deadline, which a decision does not extend', async (t) => {
  const turn = await at.awaitingApproval();
  await turn.pass(approvalTimeoutMs - 1);
  await turn.send({ type: 'DECIDED', requestId: 'one' });
  t.equal(turn.value(), 'awaitingApproval');
  await turn.pass(1);
  t.equal(turn.value(), 'runningTools');
  t.match(
    turn.emitted.find(({ type }) => type === 'turn.approvalsExpired'),
    { requestIds: ['two'] },
  );
  t.same(turn.actor.getSnapshot().context.pending, []);
});

t.test('a steering input starts another round before the turn ends', async (t) => {
  const turn = await at.inferring();
  await turn.answer('infer', answerOf({ isSteered: true }));
  t.equal(turn.value(), 'inferring');
  t.equal(turn.asked.filter((each) => each.startsWith('infer')).length, 2);
});

t.test('calls for the client end the turn after the calls of the server have run', async (t) => {
  const alone = await at.inferring();
  await alone.answer('infer', answerOf({ clientCalls: 1, finish: 'toolCalls', isSteered: true }));
  t.match(alone.emitted, [{ type: 'turn.completed', finish: 'toolCalls' }]);
  const mixed = await at.runningTools({ clientCalls: 1 });
  await mixed.answer('runTools', { isLooping: false });
  t.match(mixed.emitted, [{ type: 'turn.completed', finish: 'toolCalls' }]);
});

t.test('a turn with too many rounds, or with a loop of equal calls, is ended', async (t) => {
  const limited = await at.inferring(1);
  await limited.answer('infer', answerOf({ calls: 1 }));
  t.equal(limited.value(), 'completed');
  t.match(limited.emitted, [
    { type: 'turn.limitReached', rounds: 1 },
    { type: 'turn.completed', finish: 'length' },
  ]);
  const answered = await at.inferring(1);
  await answered.answer('infer', answerOf());
  t.same(kinds(answered), ['completed'], 'an answer in the last round completes the turn');
  const stuck = await at.runningTools();
  await stuck.answer('runTools', { isLooping: true });
  t.same(kinds(stuck), ['limitReached', 'completed']);
});

for (const state of Object.keys(at) as (keyof typeof at)[]) {
  t.test(`${state} → cancelling → cancelled after an interrupt`, async (t) => {
    const turn = await at[state]();
    await turn.send({ type: 'INTERRUPT', by: 'shutdown' });
    t.equal(turn.value(), 'cancelling');
    t.notOk(kinds(turn).includes('cancelled'), 'not over yet');
    await turn.answer('settle');
    t.equal(turn.value(), 'cancelled');
    t.same(turn.emitted.at(-1), { type: 'turn.cancelled', by: 'shutdown' });
  });
}

t.test('an interrupt aborts the pending request', async (t) => {
  const turn = await at.inferring();
  const before = turn.isAborted('infer');
  await turn.send({ type: 'INTERRUPT', by: 'user' });
  t.same([before, turn.isAborted('infer')], [false, true]);
});

t.test('cancelling ends when settling fails, and after the grace period at the latest', async (t) => {
  const failing = await at.inferring();
  await failing.send({ type: 'INTERRUPT', by: 'user' });
  await failing.fail('settle', new Error('stuck'));
  t.equal(failing.value(), 'cancelled');
  const silent = await at.inferring();
  await silent.send({ type: 'INTERRUPT', by: 'user' });
  await silent.pass(graceMs - 1);
  t.equal(silent.value(), 'cancelling');
  await silent.pass(1);
  t.equal(silent.value(), 'cancelled');
});

t.test('an answer, an error or a second interrupt during cancelling is ignored', async (t) => {
  for (const late of ['answer', 'fail'] as const) {
    const turn = await at.inferring();
    await turn.send({ type: 'INTERRUPT', by: 'user' });
    await turn[late]('infer', late === 'answer' ? answerOf() : failure);
    await turn.send({ type: 'INTERRUPT', by: 'shutdown' });
    t.equal(turn.value(), 'cancelling');
    await turn.answer('settle');
    t.same(turn.emitted, [{ type: 'turn.cancelled', by: 'user' }]);
  }
});

t.test('a turn without provided actors fails', async (t) => {
  const actor = createActor(turnMachine, { input: { threadId: 'a', turnId: 'b', maxRounds: 1 } }).start();
  await flush();
  t.equal(actor.getSnapshot().value, 'failed');
  t.same(actor.getSnapshot().context.failure, { code: 'internalError', message: 'not provided' });
});

t.test('any thrown value becomes a code and a message', async (t) => {
  t.same(turnFailureOf(new Error('x')), { code: 'internalError', message: 'x' });
  t.same(turnFailureOf(null), { code: 'internalError', message: 'null' });
  t.same(turnFailureOf('text'), { code: 'internalError', message: 'text' });
  t.same(turnFailureOf({ code: 7, message: 'm' }), { code: 'internalError', message: 'm' });
});

t.test('every state has a description, and every implementation a name', async (t) => {
  t.ok(turnMachine.definition.description);
  for (const [name, state] of Object.entries(turnMachine.states)) t.ok(state.description, name);
  t.notMatch(JSON.stringify(turnMachine.definition), /"(actions|guard|src)":(null|\[null)/);
});

t.test('the tests take every transition', async (t) => {
  t.same(
    transitionNames(turnMachine).filter((name) => !everTaken.has(name)),
    [],
  );
});
