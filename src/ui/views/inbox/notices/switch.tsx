import { useEffect, useMemo, useState } from 'preact/hooks';
import { createActor, fromPromise, type SnapshotFrom } from 'xstate';
import { pushSwitchMachine } from '../../../../../machines/browser.ts';
import { visible } from '../../../../lib/browser.ts';
import type { Api } from '../../../app/api.ts';
import { browserPush } from './browser-push.ts';
import { failureInWords, obstacleInWords, type SwitchWords, switchWords } from './words.ts';

type Snapshot = SnapshotFrom<typeof pushSwitchMachine>;

function wordsOf({ value, context: { obstacle, lastError } }: Snapshot): SwitchWords {
  if (obstacle !== null) return { text: obstacleInWords(obstacle, location) };
  if (lastError !== null) return failureInWords(visible(lastError, { multiline: false }));
  return switchWords[value] ?? { text: value };
}

/** Turns notices of this browser on and off, or explains what to do if that is impossible. */
export function NoticeSwitch({ api }: { readonly api: Api }) {
  const actor = useMemo(() => {
    const { check, subscribe, unsubscribe } = browserPush(api);
    const actors = {
      check: fromPromise(check),
      subscribe: fromPromise(subscribe),
      unsubscribe: fromPromise(unsubscribe),
    };
    return createActor(pushSwitchMachine.provide({ actors }));
  }, [api]);
  const [snapshot, setSnapshot] = useState<Snapshot>(() => actor.getSnapshot());
  useEffect(() => {
    const { unsubscribe } = actor.subscribe(setSnapshot);
    actor.start();
    const unfollow = followPermission(() => actor.send({ type: 'CHECK' }));
    return () => {
      unfollow();
      unsubscribe();
      actor.stop();
    };
  }, [actor]);
  const { text, action } = wordsOf(snapshot);
  return (
    <section class="notices" aria-label="Notices" data-state={snapshot.value}>
      <p role="status">{text}</p>
      {action && (
        <button type="button" onClick={() => actor.send({ type: action.event })}>
          {action.label}
        </button>
      )}
    </section>
  );
}

/** Calls `changed` when the user changes the browser's permission. Returns a function that ends this. */
function followPermission(changed: () => void): () => void {
  const ended = new AbortController();
  const follow = async () => {
    const status = await navigator.permissions.query({ name: 'notifications' });
    if (!ended.signal.aborted) status.addEventListener('change', changed, { signal: ended.signal });
  };
  // Without a report from the browser, the button stays.
  follow().catch(() => {});
  return () => ended.abort();
}
