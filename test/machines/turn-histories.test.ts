/** Turns of several steps: what earlier events change in later states. */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import t from 'tap';
import { createActor } from 'xstate';
import { type TurnEvent, turnMachine, turnStateOf } from '../../machines/index.ts';
import { flush, open } from './harness.ts';
import { answerOf, approvalTimeoutMs, cancelGraceMs, rejected, to, tooLong, World } from './turn-world.ts';

t.test('a turn without calls goes preparing → inferring → storing → completed', async (t) => {
  const world = new World();
  t.equal(world.value, 'preparing');
  await to.inferring(world);
  t.equal(world.value, 'inferring');
  world.send({ type: 'TOKENS.USED', tokens: { inputTokens: 3, outputTokens: 5 } });
  open(world.infer).answer(answerOf());
  await flush();
  t.equal(world.value, 'storing');
  world.send({ type: 'END.STORED' });
  t.equal(world.value, 'completed');
  t.same(world.state, {
    status: 'completed',
    tokens: { inputTokens: 3, outputTokens: 5 },
    isInterrupted: false,
    end: { status: 'completed', finishReason: 'stop' },
  });
});

t.test('a request refused as too long is repeated once; refused again it fails the turn', async (t) => {
  const world = new World();
  await to.inferring(world);
  open(world.infer).fail(tooLong);
  await flush();
  open(world.compact).answer();
  await flush();
  t.equal(open(world.infer).input.isFirstRequest, false, 'the repeated request is not the first one');
  open(world.infer).fail(tooLong);
  await flush();
  t.match(world.state.end, { status: 'failed', error: { code: 'contextTooLong' } });
});

t.test('tokens of all requests are summed, repeated and failed ones included', async (t) => {
  const world = new World();
  const use = (inputTokens: number, outputTokens: number) =>
    world.send({ type: 'TOKENS.USED', tokens: { inputTokens, outputTokens } });
  await to.inferring(world);
  use(1, 10);
  open(world.infer).fail(tooLong);
  await flush();
  open(world.compact).answer();
  await flush();
  use(2, 20);
  open(world.infer).answer(answerOf({ calls: 1 }));
  await flush();
  open(world.review).answer({ pending: [] });
  await flush();
  open(world.runTools).answer({ isLooping: false });
  await flush();
  use(4, 40);
  open(world.infer).fail(rejected);
  await flush();
  t.same(world.state.tokens, { inputTokens: 7, outputTokens: 70 });
  t.same([world.context.requests, world.context.rounds], [3, 1]);
});

t.test('a repeated request does not use up a round', async (t) => {
  const world = new World({ maxRounds: 2 });
  await to.inferring(world);
  open(world.infer).fail(tooLong);
  await flush();
  open(world.compact).answer();
  await flush();
  open(world.infer).answer(answerOf({ calls: 1 }));
  await flush();
  t.equal(world.value, 'reviewing');
});

t.test('an answer without calls in the last round completes the turn without a notice', async (t) => {
  const world = new World({ maxRounds: 1 });
  await to.storing(world);
  t.same(world.kinds, ['ending']);
  t.match(world.state.end, { status: 'completed', finishReason: 'stop' });
});

t.test('input that arrived during an answer with client calls does not start another round', async (t) => {
  const world = new World();
  await to.inferring(world);
  open(world.infer).answer(answerOf({ clientCalls: 1, finish: 'toolCalls', isSteered: true }));
  await flush();
  t.same(world.state.end, { status: 'completed', finishReason: 'toolCalls' });
});

t.test('a decision does not extend the approval timeout; an unknown request changes nothing', async (t) => {
  const world = new World();
  await to.awaitingApproval(world);
  world.clock.increment(approvalTimeoutMs - 1);
  world.send({ type: 'DECIDED', requestId: 'one' });
  world.send({ type: 'DECIDED', requestId: 'unknown' });
  t.equal(world.value, 'awaitingApproval');
  world.clock.increment(1);
  t.equal(world.value, 'runningTools');
  t.same(world.emitted.at(-1), { type: 'turn.approvalsExpired', requestIds: ['two'] });
});

t.test('during cancelling an answer, an error and a second interrupt are ignored', async (t) => {
  for (const late of ['answer', 'fail'] as const) {
    const world = new World();
    await to.inferring(world);
    const request = open(world.infer);
    world.send({ type: 'INTERRUPT', by: 'approval' });
    t.equal(request.isOpen, false, 'the request was aborted');
    if (late === 'answer') request.answer(answerOf());
    else request.fail(rejected);
    await flush();
    world.send({ type: 'INTERRUPT', by: 'shutdown' });
    t.equal(world.value, 'cancelling');
    open(world.settle).answer();
    await flush();
    world.send({ type: 'END.STORED' });
    t.same(world.state.end, { status: 'cancelled', interruptedBy: 'approval' });
    t.same(world.kinds, ['ending', 'ended']);
  }
});

t.test('an interrupt after the outcome is ignored', async (t) => {
  const world = new World();
  await to.storing(world);
  world.send({ type: 'INTERRUPT', by: 'user' });
  world.send({ type: 'END.STORED' });
  t.match(world.state, { status: 'completed', isInterrupted: false });
});

t.test('a storage failure replaces every other outcome', async (t) => {
  const failed = new World();
  open(failed.prepare).fail(rejected);
  await flush();
  const cancelled = new World();
  await to.cancelling(cancelled);
  open(cancelled.settle).answer();
  await flush();
  for (const world of [failed, cancelled]) {
    t.equal(world.value, 'storing');
    world.send({ type: 'STORAGE.FAILED', message: 'full' });
    t.same(world.state.end, { status: 'failed', error: { code: 'storageFailed', message: 'full' } });
  }
});

t.test('a turn without provided actors fails', async (t) => {
  const actor = createActor(turnMachine, { input: { threadId: 'a', turnId: 'b', maxRounds: 1 } }).start();
  await flush();
  const error = { code: 'internalError', message: 'not provided' };
  t.same(turnStateOf(actor.getSnapshot()).end, { status: 'failed', error });
});

t.test('every state has a description, and every implementation a name', async (t) => {
  t.ok(turnMachine.definition.description);
  for (const [name, state] of Object.entries(turnMachine.states)) t.ok(state.description, name);
  t.notMatch(JSON.stringify(turnMachine.definition), /"(actions|guard|src)":(null|\[null)/);
});

/** One step of a random history: an event, a result for the effect that runs, or time. */
type Step =
  | TurnEvent
  | {
      readonly type: 'answer';
      readonly calls: number;
      readonly pending: readonly string[];
      readonly isTooLong: boolean;
    }
  | { readonly type: 'fail'; readonly error: unknown }
  | { readonly type: 'advance'; readonly ms: number };

const event = fc.constantFrom<TurnEvent>(
  { type: 'INTERRUPT', by: 'user' },
  { type: 'INTERRUPT', by: 'shutdown' },
  { type: 'DECIDED', requestId: 'one' },
  { type: 'DECIDED', requestId: 'two' },
  { type: 'TOKENS.USED', tokens: { inputTokens: 1, outputTokens: 2 } },
  { type: 'END.STORED' },
  { type: 'STORAGE.FAILED', message: 'full' },
);
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({
      type: fc.constant('answer' as const),
      calls: fc.nat({ max: 2 }),
      pending: fc.subarray(['one', 'two']),
      isTooLong: fc.boolean(),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ type: fc.constant('fail' as const), error: fc.constantFrom(tooLong, rejected) }),
  },
  { weight: 4, arbitrary: event },
  fc.record({
    type: fc.constant('advance' as const),
    ms: fc.constantFrom(1, cancelGraceMs, approvalTimeoutMs),
  }),
);

const hasOpen = (questions: readonly { readonly isOpen: boolean }[]) => questions.some(({ isOpen }) => isOpen);

function take(world: World, step: Step): void {
  switch (step.type) {
    case 'answer':
      if (hasOpen(world.prepare)) open(world.prepare).answer({ isTooLong: step.isTooLong });
      else if (hasOpen(world.compact)) open(world.compact).answer();
      else if (hasOpen(world.infer)) open(world.infer).answer(answerOf({ calls: step.calls }));
      else if (hasOpen(world.review)) open(world.review).answer({ pending: step.pending });
      else if (hasOpen(world.runTools)) open(world.runTools).answer({ isLooping: false });
      else if (hasOpen(world.settle)) open(world.settle).answer();
      return;
    case 'fail':
      for (const effect of [world.prepare, world.compact, world.infer, world.review, world.runTools, world.settle]) {
        if (hasOpen(effect)) open<unknown, unknown>(effect).fail(step.error);
      }
      return;
    case 'advance':
      world.clock.increment(step.ms);
      return;
    default:
      world.send(step);
  }
}

t.test('in every history one effect runs at most, and a turn ends once', async (t) => {
  const history = async (steps: readonly Step[]) => {
    const world = new World({ maxRounds: 3 });
    for (const each of steps) {
      const before = world.state;
      take(world, each);
      await flush();
      const { end, tokens } = world.state;
      const hasEnded = world.actor.getSnapshot().status === 'done';
      assert.ok(world.running <= 1, 'one effect at most');
      assert.ok(world.running === 0 || !end, 'nothing runs after the outcome');
      assert.ok(world.compact.length <= 1, 'one compaction at most');
      assert.ok(world.context.rounds <= 3, 'no round beyond the limit');
      assert.ok(tokens.inputTokens >= before.tokens.inputTokens, 'no token is forgotten');
      if (before.end && each.type !== 'STORAGE.FAILED') assert.deepEqual(end, before.end, 'the outcome stays');
      assert.equal(world.kinds.filter((kind) => kind === 'ended').length, hasEnded ? 1 : 0);
      if (hasEnded) assert.equal(world.kinds.at(-1), 'ended');
    }
    world.actor.stop();
  };
  const seed = process.env['ORATORIO_TEST_SEED'];
  const options = seed === 'random' ? {} : { seed: Number(seed ?? 20_261_123) };
  await fc.assert(fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 30, size: 'max' }), history), {
    ...options,
    numRuns: 300,
  });
  t.pass('no history breaks a rule');
});
