import t from 'tap';
import { createActor, fromPromise, SimulatedClock, waitFor } from 'xstate';
import { type TurnEmitted, type TurnTokens, turnFailureOf, turnMachine } from '../../machines/turn.ts';

/** A promise that the test settles. */
function deferred<T>() {
  let resolve: (value: T) => void = () => {};
  let reject: (error: unknown) => void = () => {};
  const promise = new Promise<T>((onValue, onError) => {
    resolve = onValue;
    reject = onError;
  });
  return { promise, resolve, reject };
}

/** The machine with actors that wait for the test, on a clock that the test moves. */
function begin() {
  const clock = new SimulatedClock();
  const infer = deferred<TurnTokens>();
  const settle = deferred<void>();
  const seen: string[] = [];
  const emitted: TurnEmitted[] = [];
  let inferSignal: AbortSignal | undefined;
  const machine = turnMachine.provide({
    actors: {
      infer: fromPromise(({ input, signal }) => {
        seen.push(`infer ${input.threadId} ${input.turnId}`);
        inferSignal = signal;
        return infer.promise;
      }),
      settle: fromPromise(({ input }) => {
        seen.push(`settle ${input.threadId} ${input.turnId}`);
        return settle.promise;
      }),
    },
  });
  const actor = createActor(machine, { clock, input: { threadId: 'thread', turnId: 'turn_001' } });
  actor.on('*', (event) => emitted.push(event));
  actor.start();
  const ended = () => waitFor(actor, (snapshot) => snapshot.status !== 'active', { timeout: 30_000 });
  return { actor, clock, infer, settle, seen, emitted, ended, isAborted: () => inferSignal?.aborted };
}

t.test('inferring → completed when the model has answered', async (t) => {
  const { actor, infer, seen, emitted, ended } = begin();
  t.equal(actor.getSnapshot().value, 'inferring');
  t.same(seen, ['infer thread turn_001']);
  infer.resolve({ inputTokens: 3, outputTokens: 5 });
  t.equal((await ended()).value, 'completed');
  t.same(emitted, [{ type: 'turn.completed', tokens: { inputTokens: 3, outputTokens: 5 } }]);
});

t.test('inferring → failed when the model gives an error', async (t) => {
  const { infer, emitted, ended } = begin();
  infer.reject(Object.assign(new Error('no such model'), { code: 'upstreamRejected' }));
  t.equal((await ended()).value, 'failed');
  t.same(emitted, [{ type: 'turn.failed', failure: { code: 'upstreamRejected', message: 'no such model' } }]);
});

t.test('inferring → cancelling → cancelled when the model has let go', async (t) => {
  const { actor, settle, seen, emitted, ended, isAborted } = begin();
  actor.send({ type: 'INTERRUPT' });
  t.equal(actor.getSnapshot().value, 'cancelling');
  t.equal(isAborted(), true, 'the model is told');
  t.same(seen, ['infer thread turn_001', 'settle thread turn_001']);
  t.same(emitted, [], 'not over yet');
  settle.resolve();
  t.equal((await ended()).value, 'cancelled');
  t.same(emitted, [{ type: 'turn.cancelled' }]);
});

t.test('cancelling → cancelled when letting go fails', async (t) => {
  const { actor, settle, emitted, ended } = begin();
  actor.send({ type: 'INTERRUPT' });
  settle.reject(new Error('stuck'));
  t.equal((await ended()).value, 'cancelled');
  t.same(emitted, [{ type: 'turn.cancelled' }]);
});

t.test('cancelling → cancelled after the grace, whatever the model does', async (t) => {
  const { actor, clock, emitted } = begin();
  actor.send({ type: 'INTERRUPT' });
  clock.increment(499);
  t.equal(actor.getSnapshot().value, 'cancelling');
  clock.increment(1);
  t.equal(actor.getSnapshot().value, 'cancelled');
  t.same(emitted, [{ type: 'turn.cancelled' }]);
});

t.test('an answer, an error or a second interrupt that comes while cancelling changes nothing', async (t) => {
  for (const late of ['answer', 'error'] as const) {
    const { actor, infer, settle, emitted, ended } = begin();
    actor.send({ type: 'INTERRUPT' });
    if (late === 'answer') infer.resolve({ inputTokens: 1, outputTokens: 1 });
    else infer.reject(new Error('late'));
    actor.send({ type: 'INTERRUPT' });
    settle.resolve();
    t.equal((await ended()).value, 'cancelled');
    t.same(emitted, [{ type: 'turn.cancelled' }]);
  }
});

t.test('a turn without a model fails', async (t) => {
  const actor = createActor(turnMachine, { input: { threadId: 'a', turnId: 'b' } }).start();
  const snapshot = await waitFor(actor, ({ status }) => status === 'done', { timeout: 30_000 });
  t.equal(snapshot.value, 'failed');
  t.same(snapshot.context.failure, { code: 'internalError', message: 'not provided' });
});

t.test('what is thrown is told as code and message', async (t) => {
  t.same(turnFailureOf(new Error('x')), { code: 'internalError', message: 'x' });
  t.same(turnFailureOf(null), { code: 'internalError', message: 'null' });
  t.same(turnFailureOf('text'), { code: 'internalError', message: 'text' });
  t.same(turnFailureOf({ code: 7, message: 'm' }), { code: 'internalError', message: 'm' });
});

t.test('everything has a name and a description', async (t) => {
  t.ok(turnMachine.definition.description);
  for (const [name, state] of Object.entries(turnMachine.states)) t.ok(state.description, name);
  t.notMatch(JSON.stringify(turnMachine.definition), /"(actions|guard|src)":(null|\[null)/);
});
