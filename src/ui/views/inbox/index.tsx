import { useEffect, useMemo, useRef } from 'preact/hooks';
import { hostedName } from '../../../protocol/browser.ts';
import type { App } from '../../app/app.ts';
import { Empty, Skeleton } from '../../parts/empty.tsx';
import { FaultBanner } from '../../parts/state-banner.tsx';
import { AsOf } from '../overview/words.tsx';
import { RequestCard } from './card.tsx';
import { NoticeSwitch } from './notices/switch.tsx';
import { cardsOf, createInbox, type InboxCard, type InboxStore, keyOf } from './store.ts';
import './inbox.css';

/** Approvals and questions of all workspaces, oldest first. */
export default function Inbox({ app }: { readonly app: App }) {
  const store = useMemo(() => createInbox(app), [app]);
  useEffect(() => store.start(), [store]);
  const entries = store.entries.value;
  // The request that a notice leads to: `#/inbox/<workspaceId>/<requestId>`.
  const asked = app.router.route.value.path.join('/');
  return (
    <div class="view inbox">
      <div class="strip">
        <h1>Inbox</h1>
      </div>
      <FaultBanner error={store.error.value} at={null} retry={() => void store.load()} />
      {entries === null && store.error.value === null && <Skeleton rows={3} />}
      <NoticeSwitch api={app.api} />
      {entries !== null && asked !== '' && !entries.some(({ item }) => keyOf(item) === asked) && (
        <p class="past" role="status">
          The request of the notice no longer waits.
        </p>
      )}
      {entries?.length === 0 && (
        <Empty title="Nothing waits for you">
          <p>Requests for approval of all workspaces appear here.</p>
        </Empty>
      )}
      <Requests app={app} store={store} asked={asked} />
    </div>
  );
}

interface RequestsProps {
  readonly app: App;
  readonly store: InboxStore;
  /** Key of the request that a notice leads to; empty without one. */
  readonly asked?: string;
}

/** A card for each request, and one for the edits of a round; here and in *Now*. */
export function Requests({ app, store, asked = '' }: RequestsProps) {
  return (
    <ol class="requests" aria-live="polite">
      {cardsOf(store.entries.value ?? []).map((card) => (
        <Request
          key={card.key}
          app={app}
          store={store}
          card={card}
          isAsked={card.entries.some(({ item }) => keyOf(item) === asked)}
        />
      ))}
    </ol>
  );
}

interface RequestProps {
  readonly app: App;
  readonly store: InboxStore;
  readonly card: InboxCard;
  /** A notice leads to it. */
  readonly isAsked: boolean;
}

function Request({ app, store, card: { entries, open }, isAsked }: RequestProps) {
  const place = useRef<HTMLLIElement>(null);
  useEffect(() => {
    if (isAsked) place.current?.scrollIntoView({ block: 'nearest' });
  }, [isAsked]);
  const [first, ...others] = open.length > 0 ? open : entries;
  if (!first) return null;
  const { displayName, workspacePath, actionUrl, host, asOf } = first.item;
  return (
    <li
      ref={place}
      class={open.length > 0 ? 'request' : 'request decided'}
      aria-current={isAsked ? 'location' : undefined}
    >
      <RequestCard
        requests={[first.item.request, ...others.map(({ item }) => item.request)]}
        name={hostedName(host, displayName)}
        path={workspacePath}
        actionUrl={actionUrl}
        now={app.now.value}
        outcome={first.outcome}
        isOff={asOf !== null || [first, ...others].some(({ sending }) => sending !== null)}
        onAnswer={(decision, answer) => void store.answer(open, decision, answer)}
      >
        {asOf !== null && (
          <span>
            {host} is not connected; answer when it is.
            <AsOf at={asOf} now={app.now.value} />
          </span>
        )}
      </RequestCard>
    </li>
  );
}
