/** The turn machine behind its driver: events before the start, after the end, and faults. */
import t from 'tap';
import { type Inference, noTokens, type TurnEmitted, type TurnEvent } from '../../../machines/index.ts';
import type { ModelEffects, TurnWork } from '../../../src/agent/runtime/turn/actor.ts';
import { TurnDriver } from '../../../src/agent/runtime/turn/driver.ts';

const answer: Inference = { calls: 0, clientCalls: 0, isSteered: false, finish: 'stop', flaw: null };

let turns = 0;

/** A driver whose effects succeed at once. `onEmitted` may throw or answer an event. */
function driven(
  onEmitted: (event: TurnEmitted, send: (event: TurnEvent) => void) => void,
  { model, ...work }: Omit<Partial<TurnWork>, 'model'> & { readonly model?: Partial<ModelEffects> } = {},
) {
  turns += 1;
  const emitted: TurnEmitted['type'][] = [];
  const signals: AbortSignal[] = [];
  const faults: unknown[] = [];
  const ended = Promise.withResolvers<boolean>();
  const driver: TurnDriver = new TurnDriver({
    input: {
      threadId: 'thread',
      turnId: `turn_${turns}`,
      maxRounds: 3,
      maxRetries: 0,
      fallbackModels: 0,
      endChecks: 0,
      isDelegated: false,
      maxQuotaWaitMs: 0,
      asksForQuota: true,
      seed: 1,
    },
    work: {
      approvalTimeoutMs: 1_000,
      resume: async () => ({ next: 'checking' as const }),
      prepare: async (signal) => {
        signals.push(signal);
      },
      secure: async () => {},
      awaitReset: async () => {},
      delegate: async () => ({ isCancelled: false, finish: 'stop' as const }),
      failureOf: (error) => error,
      ...work,
      model: {
        check: async () => ({ isTooLong: false, usedUpBudget: null }),
        fallBack: async () => {},
        compact: async () => {},
        infer: async () => answer,
        review: async () => ({ pending: [] }),
        runTools: async () => ({ repeated: null, isCut: false }),
        checkEnd: async () => ({ continues: false }),
        conclude: async () => {},
        ...model,
      },
    },
    onEmitted: (event) => {
      emitted.push(event.type);
      if (event.type === 'turn.ended') ended.resolve(event.isStored);
      onEmitted(event, (next) => driver.send(next));
    },
    onTransition: () => undefined,
    onFault: (error) => faults.push(error),
    observe: undefined,
  });
  return { driver, emitted, signals, faults, ended: ended.promise };
}

const storeEnd = ({ type }: TurnEmitted, send: (event: TurnEvent) => void) => {
  if (type === 'turn.ending') send({ type: 'END.STORED' });
};

/** Effects of a turn that waits for approval. */
const asksForApproval: Partial<ModelEffects> = {
  infer: async () => ({ ...answer, calls: 1 }),
  review: async () => ({ pending: ['one'] }),
};

t.test('before the start a turn runs without tokens', async (t) => {
  const { driver } = driven(storeEnd);
  t.same(driver.state, {
    status: 'running',
    tokens: noTokens,
    isInterrupted: false,
    end: undefined,
  });
});

t.test('events before the start reach the machine in their order', async (t) => {
  const { driver, emitted, signals, ended } = driven(storeEnd);
  driver.send({ type: 'INTERRUPT', by: 'user' });
  driver.send({ type: 'INTERRUPT', by: 'shutdown' });
  driver.send({ type: 'TOKENS.USED', tokens: { ...noTokens, inputTokens: 1, outputTokens: 2 } });
  await driver.start();
  t.equal(await ended, true);
  t.equal(signals[0]?.aborted, true, 'the first work was aborted at once');
  t.match(driver.state, {
    tokens: { inputTokens: 1, outputTokens: 2 },
    end: { status: 'cancelled', interruptedBy: 'user' },
  });
  t.same(emitted, ['turn.ending', 'turn.ended']);
});

t.test('an ended turn ignores events', async (t) => {
  const { driver, emitted, faults, ended } = driven(storeEnd);
  await driver.start();
  await ended;
  driver.send({ type: 'STORAGE.FAILED', message: 'late' });
  driver.send({ type: 'INTERRUPT', by: 'user' });
  t.same(driver.state.end, { status: 'completed', finishReason: 'stop' });
  t.same([emitted, faults], [['turn.ending', 'turn.ended'], []]);
});

t.test('a listener that throws fails the turn once, and later events are ignored', async (t) => {
  const bug = new Error('bug');
  const { driver, emitted, faults, ended } = driven(
    (event, send) => {
      if (event.type === 'turn.waiting') throw bug;
      storeEnd(event, send);
    },
    { model: asksForApproval },
  );
  await driver.start();
  t.equal(await ended, true);
  driver.send({ type: 'DECIDED', requestId: 'one' });
  driver.send({ type: 'END.STORED' });
  t.match(driver.state.end, { status: 'failed', error: { code: 'internalError' } });
  t.same(faults, [bug]);
  t.same(emitted, ['turn.waiting', 'turn.ending', 'turn.ended']);
});

t.test('a fault whose end cannot be written ends the turn unstored', async (t) => {
  const { driver, ended } = driven(
    (event, send) => {
      if (event.type === 'turn.waiting') throw new Error('bug');
      if (event.type === 'turn.ending') send({ type: 'STORAGE.FAILED', message: 'full' });
    },
    { model: asksForApproval },
  );
  await driver.start();
  t.equal(await ended, false);
  t.equal(driver.state.status, 'failed');
});

t.test('a fault after the end is only reported', async (t) => {
  const bug = new Error('bug');
  const { driver, emitted, faults, ended } = driven((event, send) => {
    storeEnd(event, send);
    if (event.type === 'turn.ended') throw bug;
  });
  await driver.start();
  await ended;
  t.same(faults, [bug]);
  t.match(driver.state.end, { status: 'completed' });
  t.same(emitted, ['turn.ending', 'turn.ended']);
});

t.test('a driver that is stopped before its start does not start its machine', async (t) => {
  const { driver, emitted, faults, signals } = driven(storeEnd);
  driver.stop();
  await driver.start();
  t.strictSame([driver.saved, emitted, faults, signals], [undefined, [], [], []]);
});
