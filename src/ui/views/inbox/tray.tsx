import { useSignal } from '@preact/signals';
import { useEffect, useMemo } from 'preact/hooks';
import { hostedName } from '../../../protocol/browser.ts';
import type { App } from '../../app/app.ts';
import { RequestCard } from './card.tsx';
import { cardsOf, createInbox, type InboxEntry, keyOf } from './store.ts';

/** The oldest waiting request above every view that does not show it, so that one press answers it. Takes no focus. */
export function Tray({ app }: { readonly app: App }) {
  const store = useMemo(() => createInbox(app), [app]);
  const put = useSignal<ReadonlySet<string>>(new Set());
  useEffect(() => store.start(), [store]);
  const card = cardsOf(store.entries.value ?? []).find(
    ({ open: [first] }) =>
      first && first.item.asOf === null && !put.value.has(keyOf(first.item)) && !isShownHere(app, first),
  );
  const [first, ...others] = card?.open ?? [];
  const answer: Parameters<typeof RequestCard>[0]['onAnswer'] = (decision, answered) => {
    const isByKey = document.activeElement?.matches(':focus-visible') ?? false;
    void store.answer(card?.open ?? [], decision, answered).then((outcome) => {
      if (outcome !== null) app.toast({ text: outcome, ms: 3_000 });
      // The focus of a removed button returns to the view.
      if (isByKey) document.querySelector<HTMLElement>('main')?.focus();
    });
  };
  return (
    <aside aria-label="Waiting request" aria-live="polite" class={first ? 'tray' : undefined}>
      {first && (
        <RequestCard
          key={card?.key}
          requests={[first.item.request, ...others.map(({ item }) => item.request)]}
          name={hostedName(first.item.host, first.item.displayName)}
          path={first.item.workspacePath}
          actionUrl={first.item.actionUrl}
          now={app.now.value}
          outcome={null}
          isOff={first.sending !== null}
          onAnswer={answer}
        >
          <button
            type="button"
            class="bare"
            onClick={() => {
              put.value = new Set([...put.peek(), ...[first, ...others].map(({ item }) => keyOf(item))]);
            }}
          >
            Later
          </button>
        </RequestCard>
      )}
    </aside>
  );
}

/** Whether the open view is the conversation of a request. */
function isShownHere({ server, router }: App, { item }: InboxEntry): boolean {
  const { view, path } = router.route.value;
  return view === 'chat' && path[0] === item.request.threadId && item.actionUrl.startsWith(`${server.base}/`);
}
