import t from 'tap';
import type { TransitionRecord } from '../../src/protocol/index.ts';
import type { Actor, LogEntry } from '../../src/ui/views/actors/model.ts';
import type { Reason } from '../../src/ui/views/actors/why.ts';
import { eventClause, whySentence } from '../../src/ui/views/actors/why-text.ts';

const record = (event: string, projection: TransitionRecord['projection'] = {}): TransitionRecord => ({
  type: 'transition',
  id: 'a',
  step: 1,
  at: new Date(0),
  event,
  source: null,
  edges: [],
  from: ['running'],
  to: ['exited', 'exited.deciding'],
  actions: [],
  projection,
});
const reason = (of: TransitionRecord, nth = 1): Reason => {
  const entry: LogEntry = { at: 0, n: 1, record: of, heldMs: null, heardAt: 0 };
  return { entry, nth, because: [], after: [] };
};
const actor = (states: readonly string[], projection: Actor['projection'] = {}): Actor => ({
  id: 'a',
  parent: null,
  machine: 'agent-server',
  title: 'a',
  createdAt: new Date(0),
  states,
  projection,
  since: new Date(0),
  statistics: {},
  countedAt: 0,
  restarts: 0,
  steps: 1,
  log: [],
  deadLetters: 0,
  ending: null,
});

t.test('the cause of a state is one sentence, with the signal, the count and its window', async (t) => {
  const facts = { signal: 'SIGKILL', exitCode: null, failures: 2, failureWindowMs: 120_000 };
  t.equal(
    whySentence(actor(['exited', 'exited.backingOff'], facts), [
      reason(record('PROCESS.EXITED', facts)),
      reason(record('always', facts)),
    ]),
    'Restarting because the process ended with SIGKILL, the second time in 120 s.',
  );
  t.equal(
    whySentence(actor(['exited', 'exited.givenUp'], { failures: 6 }), [
      reason(record('PROCESS.EXITED', { exitCode: 1 })),
    ]),
    'Gave up because the process ended with code 1, the sixth time.',
  );
  t.equal(
    whySentence(actor(['unhealthy']), [reason(record('PROBE.FAILED'), 3)]),
    'Not answering because it did not answer, the third time in a row.',
  );
  t.equal(whySentence(actor(['stopped']), []), undefined);
});

t.test('an event without words is named, also when Object has a member of this name', async (t) => {
  t.equal(eventClause(record('done(compact)')), '“compact” was done');
  t.equal(eventClause(record('error(compact)')), '“compact” failed');
  t.equal(eventClause(record('after(grace)')), 'the time “grace” was over');
  t.equal(eventClause(record('toString')), '“tostring” came');
  t.equal(eventClause(record('END.STORED')), 'the end was stored');
  t.equal(eventClause(record('TOKENS.USED')), 'the tokens were used');
  t.equal(eventClause(record('TURN.ENDED')), 'the turn ended');
  t.equal(eventClause(record('LINK.GONE')), '“link gone” came');
});
