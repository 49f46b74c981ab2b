import { type ReadonlySignal, signal } from '@preact/signals';
import type { ActorRef, EventObject, Snapshot } from 'xstate';

/** Signal with the current snapshot of an actor, for views. */
export function snapshotSignal<S extends Snapshot<unknown>, E extends EventObject>(
  actor: ActorRef<S, E>,
): ReadonlySignal<S> {
  const current = signal(actor.getSnapshot());
  actor.subscribe((snapshot) => {
    current.value = snapshot;
  });
  return current;
}
