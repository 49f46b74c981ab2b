import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { visible } from '../../../lib/browser.ts';
import { answersTo } from '../../../protocol/browser.ts';
import type { App } from '../../app/app.ts';
import { Answers } from '../../parts/answers.tsx';
import { ConsentText, useSeen } from '../../parts/consent.tsx';
import { Empty, Skeleton } from '../../parts/empty.tsx';
import { QuestionForm } from '../../parts/question-form.tsx';
import { FaultBanner } from '../../parts/state-banner.tsx';
import { bothTimes, distance } from '../../parts/time.ts';
import { askedChange, partsToSee } from '../chat/data/diff-rows.ts';
import { ConsentChange } from '../chat/rows/consent-change.tsx';
import { NoticeSwitch } from './notices/switch.tsx';
import { createInbox, type InboxEntry, type InboxStore, keyOf } from './store.ts';
import './inbox.css';

/** Time in which a new request ignores clicks and keys, because they may be meant for something else. */
const settleMs = 500;

/** Approvals and questions of all workspaces, oldest first. */
export default function Inbox({ app }: { readonly app: App }) {
  const store = useMemo(() => createInbox(app), [app]);
  useEffect(() => store.start(), [store]);
  const entries = store.entries.value;
  // The request that a notice leads to: `#/inbox/<workspaceId>/<requestId>`.
  const asked = app.router.route.value.path.join('/');
  return (
    <div class="view inbox">
      <h1 class="unseen">Inbox</h1>
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

/** A card for each request, here and in *Now*. */
export function Requests({ app, store, asked = '' }: RequestsProps) {
  return (
    <ol class="requests" aria-live="polite">
      {store.entries.value?.map((entry) => (
        <Request key={keyOf(entry.item)} app={app} store={store} entry={entry} isAsked={keyOf(entry.item) === asked} />
      ))}
    </ol>
  );
}

interface RequestProps {
  readonly app: App;
  readonly store: InboxStore;
  readonly entry: InboxEntry;
  /** A notice leads to it. */
  readonly isAsked: boolean;
}

function Request({ app, store, entry, isAsked }: RequestProps) {
  const place = useRef<HTMLLIElement>(null);
  useEffect(() => {
    if (isAsked) place.current?.scrollIntoView({ block: 'nearest' });
  }, [isAsked]);
  const { item, outcome } = entry;
  const { displayName, workspacePath, actionUrl, request } = item;
  const expiresAt = Date.parse(request.expiresAt);
  const asked = useMemo(() => askedChange(null, request.diff), [request.diff]);
  const { isSeen, see } = useSeen(partsToSee(asked));
  return (
    <li
      ref={place}
      class={outcome === null ? 'request' : 'request decided'}
      aria-current={isAsked ? 'location' : undefined}
    >
      <header>
        <b title={workspacePath}>{displayName}</b> wants to {request.operation}{' '}
        <span class="quiet">({request.tool})</span>
      </header>
      {!request.question && <ConsentText text={request.target} onSeen={() => see('target')} />}
      <ConsentChange change={asked} onSeen={() => see('change')} />
      <dl hidden={request.question !== undefined}>
        {request.workingDirectory !== undefined && <Fact name="In" text={request.workingDirectory} />}
        {request.reason !== undefined && <Fact name="Reason" text={request.reason} />}
        {answersTo(request)
          .filter(({ decision }) => decision === 'acceptForSession' || decision === 'acceptAlways')
          .map(({ decision, means }) => (
            <Fact key={decision} name={decision === 'acceptAlways' ? 'Always' : 'In this conversation'} text={means} />
          ))}
      </dl>
      {outcome === null ? (
        <SettledAnswers store={store} entry={entry} isSeen={isSeen} />
      ) : (
        <p class="outcome" role="status">
          {outcome}
        </p>
      )}
      <footer>
        <a href={actionUrl}>Open the conversation</a>
        {outcome === null && (
          <span class="quiet" title={bothTimes(expiresAt)}>
            Declined {distance(expiresAt, app.now.value)} without an answer
          </span>
        )}
      </footer>
    </li>
  );
}

function Fact({ name, text }: { readonly name: string; readonly text: string }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{visible(text)}</dd>
    </div>
  );
}

/** Buttons that answer once the request has stood for a moment; those that allow, once its end was in view. */
function SettledAnswers({
  store,
  entry,
  isSeen,
}: Pick<RequestProps, 'store' | 'entry'> & { readonly isSeen: boolean }) {
  const [hasSettled, setHasSettled] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setHasSettled(true), settleMs);
    return () => clearTimeout(timer);
  }, []);
  const isOff = !hasSettled || entry.sending !== null;
  const { question } = entry.item.request;
  if (question)
    return (
      <QuestionForm
        question={question}
        isOff={isOff}
        onAnswer={(answer) => void store.answer(entry.item, answer.action, answer)}
      />
    );
  return (
    <Answers
      request={entry.item.request}
      isOff={isOff}
      isSeen={isSeen}
      onAnswer={(decision) => void store.answer(entry.item, decision)}
    />
  );
}
