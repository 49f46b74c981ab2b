// The page of the inspector lies in /inspector/: cp -r node_modules/@oratorio/inspector/page public/inspector
import { createInspector } from '@oratorio/inspector';
import { StrictMode, useEffect, useState, useSyncExternalStore } from 'react';
import { createRoot } from 'react-dom/client';
import { assign, createActor, createMachine } from 'xstate';

const inspector = createInspector({ page: '/inspector/' });

const counter = createMachine({
  id: 'counter',
  context: { count: 0 },
  initial: 'counting',
  states: {
    counting: {
      on: {
        ADD: { actions: assign({ count: ({ context }) => context.count + 1 }) },
        STOP: 'stopped',
      },
    },
    stopped: { on: { START: 'counting' } },
  },
});

/** Starts an actor with its component. Strict Mode makes two actors, of which it starts one, and mounts that one twice. */
function useCounter() {
  const [actor] = useState(() => createActor(counter, { id: 'my counter', inspect: inspector.inspect }));
  useEffect(() => {
    const timer = setTimeout(() => actor.start());
    return () => clearTimeout(timer);
  }, [actor]);
  const snapshot = useSyncExternalStore(
    (changed) => {
      const { unsubscribe } = actor.subscribe(changed);
      return unsubscribe;
    },
    () => actor.getSnapshot(),
  );
  return [snapshot, actor.send];
}

function Counter() {
  const [{ context, value }, send] = useCounter();
  return (
    <p>
      <button type="button" onClick={() => send({ type: 'ADD' })}>
        Add
      </button>
      <button type="button" onClick={() => send({ type: value === 'stopped' ? 'START' : 'STOP' })}>
        {value === 'stopped' ? 'Start' : 'Stop'}
      </button>
      <output>{context.count}</output>{' '}
      <button type="button" onClick={async () => window.open(await inspector.url, '_blank', 'noopener')}>
        Inspect
      </button>
    </p>
  );
}

createRoot(document.getElementById('root')).render(
  <StrictMode>
    <Counter />
  </StrictMode>,
);
