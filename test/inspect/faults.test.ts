/** XState stops an actor for ever when an inspector throws, so the recorder must not throw for any fault. */
import fc from 'fast-check';
import t from 'tap';
import { createActor } from 'xstate';
import { createInspectionSource, createRecorder, createStatelySource } from '../../src/inspect/index.ts';
import { HandClock } from './hand-clock.ts';
import { doorMachine, lampMachine } from './helpers.ts';

const machines = { door: doorMachine, lamp: lampMachine };

/** Everything the recorder calls that is not its own. */
const hooks = ['now', 'setTimeout', 'clearTimeout', 'projection', 'value', 'listener', 'onEnd', 'onFault'] as const;
type Hook = (typeof hooks)[number];

/** Throws as planned for each hook; a plan repeats from its beginning. */
function trapsOf(plans: Readonly<Record<Hook, readonly boolean[]>>) {
  const counts = new Map<Hook, number>();
  return (hook: Hook) => {
    const count = counts.get(hook) ?? 0;
    counts.set(hook, count + 1);
    const plan = plans[hook];
    if (plan[count % Math.max(1, plan.length)]) throw new Error(`fault in ${hook}`);
  };
}

const plans = fc.record(
  Object.fromEntries(hooks.map((hook) => [hook, fc.array(fc.boolean(), { maxLength: 6 })])) as Record<
    Hook,
    fc.Arbitrary<boolean[]>
  >,
);
const events = fc.array(fc.constantFrom('OPEN', 'CLOSE', 'KNOCK', 'BLINK', 'PASS'), { maxLength: 25 });

t.test('a fault in any callback of the recorder does not affect the actor', async () => {
  await fc.assert(
    fc.property(plans, events, fc.boolean(), (faults, types, stops) => {
      const trap = trapsOf(faults);
      const clock = new HandClock();
      const recorder = createRecorder({
        clock: {
          now: () => {
            trap('now');
            return clock.now();
          },
          setTimeout: (callback, milliseconds) => {
            trap('setTimeout');
            return clock.setTimeout(callback, milliseconds);
          },
          clearTimeout: (timer) => {
            trap('clearTimeout');
            clock.clearTimeout(timer);
          },
        },
        machines,
        ringRecords: 8,
        actorRingRecords: 4,
        endedActors: 2,
        projections: {
          door: ({ knocks }: { readonly knocks: number }) => {
            trap('projection');
            return {
              knocks,
              get odd() {
                trap('value');
                return true;
              },
            };
          },
        },
        onFault: () => trap('onFault'),
      });
      const watched = createActor(doorMachine, { input: {} });
      const alone = createActor(doorMachine, { input: {} });
      recorder.observe(watched, { id: 'd', parent: null, machine: 'door', title: 'd' });
      const listener = () => trap('listener');
      const end = () => trap('onEnd');
      // A fault during a subscription is thrown to its viewer.
      for (const subscribe of [
        () => recorder.subscribe(listener, end),
        () => createInspectionSource(recorder).subscribe(listener, end),
        () => createStatelySource(recorder, machines).subscribe(listener, end),
      ]) {
        try {
          subscribe();
        } catch {
          // The recorder continues.
        }
      }
      watched.start();
      alone.start();
      for (const type of types) {
        if (type === 'PASS') clock.pass(16);
        else {
          watched.send({ type } as never);
          alone.send({ type } as never);
        }
      }
      const lamp = (door: typeof watched) => door.getSnapshot().children['lamp']?.getSnapshot() as { value: unknown };
      const isSame =
        JSON.stringify(watched.getSnapshot().value) === JSON.stringify(alone.getSnapshot().value) &&
        watched.getSnapshot().status === 'active' &&
        watched.getSnapshot().context.knocks === alone.getSnapshot().context.knocks &&
        lamp(watched).value === lamp(alone).value;
      if (stops) watched.stop();
      recorder.close();
      watched.stop();
      alone.stop();
      return isSame && watched.getSnapshot().status === 'stopped';
    }),
    { numRuns: 300 },
  );
});

t.test('inspection events of any shape do not fail the recorder', async (t) => {
  const junk = fc.oneof(fc.anything(), fc.constant(null), fc.constant(undefined));
  const event = fc.record({
    type: fc.constantFrom('@xstate.event', '@xstate.microstep', '@xstate.snapshot', '@xstate.actor', '@xstate.action'),
    actorRef: junk,
    sourceRef: junk,
    event: junk,
    snapshot: junk,
    _transitions: junk,
  });
  const recorder = createRecorder({ machines });
  const door = createActor(doorMachine, { input: {} });
  recorder.observe(door, { id: 'd', parent: null, machine: 'door', title: 'd' });
  door.start();
  const system = door.system as unknown as { _sendInspectionEvent(event: unknown): void };
  fc.assert(
    fc.property(event, fc.boolean(), (made, isOurs) => {
      system._sendInspectionEvent(isOurs ? { ...made, actorRef: door } : made);
    }),
    { numRuns: 500 },
  );
  door.send({ type: 'OPEN' });
  t.ok(door.getSnapshot().matches('open'));
  t.ok(recorder.snapshot().length > 0);
  recorder.close();
  door.stop();
});

t.test('a closed recorder ignores its actors', async (t) => {
  const recorder = createRecorder({ machines });
  const door = createActor(doorMachine, { input: {} });
  recorder.observe(door, { id: 'd', parent: null, machine: 'door', title: 'd' });
  door.start();
  recorder.close();
  const { sequence } = recorder;
  door.send({ type: 'OPEN' });
  door.stop();
  door.send({ type: 'CLOSE' });
  t.equal(recorder.sequence, sequence);
});
