import { assign, createActor, setup } from 'xstate';
import { type BenchEvent, makeEvent } from './events.ts';

/** Source of the events of a tick: nothing, a hand-written switch, or an XState actor whose transitions they are. */
export type SourceName = 'plain' | 'switch' | 'xstate';

type Emit = (event: BenchEvent) => void;

/** Two states, a guardless event each way, two actions: the shape of running ↔ unhealthy. */
export const machine = setup({
  types: { context: {} as { failures: number; changes: number }, events: {} as { type: 'FAIL' } | { type: 'PASS' } },
  actions: {
    countFailure: assign({ failures: ({ context }) => context.failures + 1 }),
    forgetFailures: assign({ failures: 0 }),
    countChange: assign({ changes: ({ context }) => context.changes + 1 }),
  },
}).createMachine({
  id: 'bench',
  context: { failures: 0, changes: 0 },
  initial: 'running',
  states: {
    running: { on: { FAIL: { target: 'unhealthy', actions: ['countFailure', 'countChange'] } } },
    unhealthy: { on: { PASS: { target: 'running', actions: ['forgetFailures', 'countChange'] } } },
  },
});

function xstateSource(emit: Emit): () => void {
  const actor = createActor(machine);
  actor.start();
  actor.subscribe((snapshot) => emit(makeEvent(`appserver.${snapshot.value}`)));
  const fail = { type: 'FAIL' } as const;
  const pass = { type: 'PASS' } as const;
  return () => actor.send(actor.getSnapshot().value === 'running' ? fail : pass);
}

/** Statechart written by hand. */
function switchSource(emit: Emit): () => void {
  const state = { value: 'running', failures: 0, changes: 0 };
  const send = (type: 'FAIL' | 'PASS'): void => {
    switch (`${state.value} ${type}`) {
      case 'running FAIL':
        state.value = 'unhealthy';
        state.failures += 1;
        break;
      case 'unhealthy PASS':
        state.value = 'running';
        state.failures = 0;
        break;
      default:
        return;
    }
    state.changes += 1;
    emit(makeEvent(`appserver.${state.value}`));
  };
  return () => send(state.value === 'running' ? 'FAIL' : 'PASS');
}

/** One call is one event. */
export function createSource(name: SourceName, emit: Emit): () => void {
  if (name === 'xstate') return xstateSource(emit);
  if (name === 'switch') return switchSource(emit);
  return () => emit(makeEvent());
}
