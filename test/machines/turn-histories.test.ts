/** Turns of several steps: effects of earlier events in later states. */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import t from 'tap';
import { createActor } from 'xstate';
import { type TurnEvent, turnMachine, turnStateOf } from '../../machines/index.ts';
import { flush, open } from './harness.ts';
import {
  answerOf,
  approvalTimeoutMs,
  cancelGraceMs,
  checkOf,
  cut,
  refusedPart,
  rejected,
  to,
  tokensOf,
  tooLong,
  World,
  worldFor,
} from './turn-world.ts';

t.test('a turn without calls goes preparing → inferring → storing → completed', async (t) => {
  const world = new World();
  t.equal(world.value, 'preparing');
  await to.inferring(world);
  t.equal(world.value, 'inferring');
  world.send({ type: 'TOKENS.USED', tokens: tokensOf(3, 5) });
  open(world.infer).answer(answerOf());
  await flush();
  t.equal(world.value, 'storing');
  world.send({ type: 'END.STORED' });
  t.equal(world.value, 'completed');
  t.same(world.state, {
    status: 'completed',
    tokens: tokensOf(3, 5),
    isInterrupted: false,
    end: { status: 'completed', finishReason: 'stop' },
  });
});

t.test('a request refused as too long is repeated after up to three compactions', async (t) => {
  const world = new World();
  await to.inferring(world);
  for (let compaction = 1; compaction <= 3; compaction += 1) {
    open(world.infer).fail(tooLong);
    await flush();
    t.equal(world.context.patience.compactions, compaction);
    open(world.compact).answer();
    await flush();
    t.equal(open(world.infer).input.isFirstRequest, true, 'no request has been answered');
  }
  open(world.infer).fail(tooLong);
  await flush();
  t.match(world.state.end, { status: 'failed', error: { code: 'contextTooLong' } });
});

t.test('a turn that is held up three times ends with its next answer', async (t) => {
  const world = worldFor('checkingEnd');
  await to.checkingEnd(world);
  for (let time = 1; time <= 3; time += 1) {
    open(world.checkEnd).answer({ continues: true });
    await flush();
    open(world.check).answer(checkOf());
    await flush();
    open(world.infer).answer(answerOf());
    await flush();
  }
  t.same([world.value, world.checkEnd.length], ['storing', 3]);
  t.same(world.state.end, { status: 'completed', finishReason: 'stop' });
});

t.test('calls for the client end a turn without its hooks', async (t) => {
  const world = worldFor('checkingEnd');
  await to.inferring(world);
  open(world.infer).answer(answerOf({ clientCalls: 1, finish: 'toolCalls' }));
  await flush();
  t.same([world.value, world.checkEnd.length], ['storing', 0]);
});

t.test('an answer resets the count of compactions and of failed requests', async (t) => {
  const world = new World({ maxRetries: 1 });
  await to.retrying(world);
  world.clock.increment(world.context.patience.retryMs);
  open(world.check).answer(checkOf({ isTooLong: true }));
  await flush();
  open(world.compact).answer();
  await flush();
  t.same([world.context.patience.compactions, world.context.patience.failedRequests], [1, 1]);
  open(world.infer).answer(answerOf({ calls: 1 }));
  await flush();
  t.same([world.context.patience.compactions, world.context.patience.failedRequests], [0, 0]);
});

t.test('parts are left out eight times at most until an answer; then the refusal ends the turn', async (t) => {
  const world = new World();
  await to.inferring(world);
  for (let time = 1; time <= 8; time += 1) {
    open(world.infer).fail(refusedPart);
    await flush();
    t.equal(world.value, 'checking');
    open(world.check).answer(checkOf());
    await flush();
  }
  open(world.infer).fail(refusedPart);
  await flush();
  t.same(world.state.end, { status: 'failed', error: { code: 'upstreamRejected', message: 'no such picture' } });
});

t.test('pauses double up to 30 s; eight repetitions wait about a minute and a half', async (t) => {
  const world = new World({ maxRetries: 8 });
  await to.inferring(world);
  const pauses: number[] = [];
  for (let attempt = 1; attempt <= 8; attempt += 1) {
    open(world.infer).fail(cut);
    await flush();
    t.equal(world.value, 'retrying');
    pauses.push(world.context.patience.retryMs);
    world.clock.increment(world.context.patience.retryMs);
    open(world.check).answer(checkOf());
    await flush();
  }
  open(world.infer).fail(cut);
  await flush();
  t.match(world.state.end, { status: 'failed', error: { code: 'upstreamProtocol' } }, 'the ninth failure is the last');
  const full = [500, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000];
  for (const [index, pause] of pauses.entries()) {
    const most = full[index] ?? 0;
    t.ok(pause >= most * 0.75 && pause <= most, `${pause} of ${most} ms`);
  }
});

t.test(
  'a failure that names fewer repetitions ends the turn after them, and one that names more does not',
  async (t) => {
    for (const [limit, named, most] of [
      [8, 2, 2],
      [3, 5, 3],
    ] as const) {
      const world = new World({ maxRetries: limit });
      const failure = Object.assign(new Error('refused'), { ...cut, maxRetries: named });
      await to.inferring(world);
      for (let attempt = 1; attempt <= most; attempt += 1) {
        open(world.infer).fail(failure);
        await flush();
        t.equal(world.value, 'retrying');
        world.clock.increment(world.context.patience.retryMs);
        open(world.check).answer(checkOf());
        await flush();
      }
      open(world.infer).fail(failure);
      await flush();
      t.match(world.state.end, { status: 'failed', error: { code: 'upstreamProtocol' } });
    }
  },
);

t.test(
  'the pause that the upstream asks for is used unchanged; beyond two minutes the turn does not wait',
  async (t) => {
    const asking = (retryAfterMs: number) => Object.assign(new Error('slow down'), { ...cut, retryAfterMs });
    const world = new World({ maxRetries: 3, fallbackModels: 1 });
    await to.inferring(world);
    open(world.infer).fail(asking(120_000));
    await flush();
    t.same([world.value, world.context.patience.retryMs], ['retrying', 120_000]);
    world.clock.increment(120_000);
    open(world.check).answer(checkOf());
    await flush();
    open(world.infer).fail(asking(120_001));
    await flush();
    t.equal(world.value, 'fallingBack');
  },
);

t.test('every fallback model takes over once, in order; then the failure ends the turn', async (t) => {
  const world = new World({ fallbackModels: 2 });
  await to.inferring(world);
  for (const index of [0, 1]) {
    open(world.infer).fail(rejected);
    await flush();
    t.match(world.emitted.at(-1), { type: 'turn.fallingBack', index });
    open(world.fallBack).answer();
    await flush();
    open(world.check).answer(checkOf());
    await flush();
  }
  open(world.infer).fail(rejected);
  await flush();
  t.match(world.state.end, { status: 'failed', error: { code: 'upstreamRejected' } });
});

t.test('tokens of all requests are summed, repeated and failed ones included', async (t) => {
  const world = new World();
  const use = (inputTokens: number, outputTokens: number) =>
    world.send({ type: 'TOKENS.USED', tokens: tokensOf(inputTokens, outputTokens) });
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
  open(world.secure).answer();
  await flush();
  open(world.runTools).answer({ repeated: null, isCut: false });
  await flush();
  open(world.check).answer(checkOf());
  await flush();
  use(4, 40);
  open(world.infer).fail(rejected);
  await flush();
  t.same(world.state.tokens, tokensOf(7, 70));
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
  t.equal(world.value, 'securing');
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
  const input = {
    threadId: 'a',
    turnId: 'b',
    maxRounds: 1,
    maxRetries: 0,
    fallbackModels: 0,
    endChecks: 0,
    isDelegated: false,
    maxQuotaWaitMs: 0,
    asksForQuota: true,
    seed: 1,
  };
  const actor = createActor(turnMachine, { input }).start();
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
      readonly usedUpBudget: string | null;
    }
  | { readonly type: 'fail'; readonly error: unknown }
  | { readonly type: 'advance'; readonly ms: number };

const event = fc.constantFrom<TurnEvent>(
  { type: 'INTERRUPT', by: 'user' },
  { type: 'INTERRUPT', by: 'shutdown' },
  { type: 'DECIDED', requestId: 'one' },
  { type: 'DECIDED', requestId: 'two' },
  { type: 'TOKENS.USED', tokens: tokensOf(1, 2) },
  { type: 'TOKENS.USED', tokens: tokensOf(0, 0, 0.5) },
  { type: 'BUDGET.RAISED' },
  { type: 'HOLD.ANSWERED', answer: 'accepted' },
  { type: 'HOLD.ANSWERED', answer: 'hurried' },
  { type: 'HOLD.ANSWERED', answer: 'refused' },
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
      usedUpBudget: fc.constantFrom(null, null, null, 'used up'),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ type: fc.constant('fail' as const), error: fc.constantFrom(tooLong, rejected, cut) }),
  },
  { weight: 4, arbitrary: event },
  fc.record({
    type: fc.constant('advance' as const),
    ms: fc.constantFrom(1, 1_000, cancelGraceMs, approvalTimeoutMs),
  }),
);

const hasOpen = (questions: readonly { readonly isOpen: boolean }[]) => questions.some(({ isOpen }) => isOpen);

const effectsOf = ({ prepare, check, compact, infer, fallBack, review, secure, runTools, conclude, settle }: World) => [
  prepare,
  check,
  compact,
  infer,
  fallBack,
  review,
  secure,
  runTools,
  conclude,
  settle,
];

function take(world: World, step: Step): void {
  switch (step.type) {
    case 'answer':
      if (hasOpen(world.prepare)) open(world.prepare).answer();
      else if (hasOpen(world.check)) open(world.check).answer(checkOf(step));
      else if (hasOpen(world.fallBack)) open(world.fallBack).answer();
      else if (hasOpen(world.compact)) open(world.compact).answer();
      else if (hasOpen(world.infer)) open(world.infer).answer(answerOf({ calls: step.calls }));
      else if (hasOpen(world.review)) open(world.review).answer({ pending: step.pending });
      else if (hasOpen(world.secure)) open(world.secure).answer();
      else if (hasOpen(world.runTools))
        open(world.runTools).answer({ repeated: step.calls > 1 ? 'Look' : null, isCut: false });
      else if (hasOpen(world.conclude)) open(world.conclude).answer();
      else if (hasOpen(world.settle)) open(world.settle).answer();
      return;
    case 'fail':
      for (const effect of effectsOf(world)) {
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
    const world = new World({ maxRounds: 3, maxRetries: 2, fallbackModels: 1 });
    for (const each of steps) {
      const before = world.state;
      take(world, each);
      await flush();
      const { end, tokens } = world.state;
      const hasEnded = world.actor.getSnapshot().status === 'done';
      assert.ok(world.running <= 1, 'one effect at most');
      assert.ok(world.running === 0 || !end, 'nothing runs after the outcome');
      assert.ok(world.context.patience.compactions <= 4, 'no compaction beyond the limit');
      assert.ok(
        world.context.patience.failedRequests <= 2 && world.context.patience.fallbacks <= 1,
        'no repetition beyond the limit',
      );
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
