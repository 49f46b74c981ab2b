/** Deliveries of the source's webhook, each with its outcome and the reason. */

import { useSignal } from '@preact/signals';
import { useEffect, useMemo } from 'preact/hooks';
import { messageOf } from '../../../lib/browser.ts';
import type { Delivery } from '../../../protocol/index.ts';
import type { App } from '../../app/app.ts';
import { useResource } from '../../app/resource.ts';
import { Empty } from '../../parts/empty.tsx';
import { ListView } from '../../parts/list-view.tsx';
import { Banner } from '../../parts/state-banner.tsx';
import { clockTime } from '../../parts/time.ts';
import { type Rows, reviewApi } from '../review/api.ts';
import { isAbout } from '../review/live.ts';
import { Moment, Pill } from '../review/parts.tsx';
import { reasonWords } from '../review/reason-words.ts';
import { counted, outcomeLooks, repositoryName } from '../review/words.ts';
import './deliveries.css';

/** Events after which deliveries are fetched again: their outcome has no event of its own. */
const isConcerned = isAbout(['delivery.received', 'item.changed', 'run.changed', 'sync.changed']);
const pageSize = 100;
const columns = ['Outcome', 'Event', 'About', 'Reason', 'From', 'Took', 'Again', 'Received'] as const;
const outcomes = Object.keys(outcomeLooks) as Delivery['outcome'][];

export default function DeliveriesView({ app }: { readonly app: App }) {
  const api = useMemo(() => reviewApi(app.api), [app]);
  const { outcome = '' } = app.router.route.value.query;
  const older = useSignal<Rows<Delivery> | null>(null);
  const load = (signal: AbortSignal) => api.deliveries({ outcome, limit: pageSize }, signal);
  const { data, error, at, reload } = useResource(load, [outcome], { live: app.live, isConcerned });
  const status = useResource((signal) => api.status(signal));
  useEffect(() => {
    older.value = null;
  }, [outcome]);
  const first = data.value?.rows ?? [];
  const known = new Set(first.map(({ deliveryId }) => deliveryId));
  const rows = [...first, ...(older.value?.rows ?? []).filter(({ deliveryId }) => !known.has(deliveryId))];
  const next = older.value ? older.value.next : data.value?.next;
  const more = async () => {
    if (next === undefined) return;
    try {
      const page = await api.deliveries({ outcome, limit: pageSize, cursor: next });
      older.value = { ...page, rows: [...(older.peek()?.rows ?? []), ...page.rows] };
    } catch (fault) {
      app.toast({ text: messageOf(fault), tone: 'danger' });
    }
  };
  return (
    <ListView
      app={app}
      class="deliveries"
      title="Deliveries"
      lead={<Outcomes chosen={outcome} onChoose={(wanted) => app.router.set({ outcome: wanted })} />}
      tools={
        data.value && (
          <span class="quiet">
            {rows.length.toLocaleString()}
            {next !== undefined && '+'}
          </span>
        )
      }
      state={{ error, at, reload, isLoaded: data.value !== null }}
      notices={
        status.data.value &&
        !status.data.value.webhookReady && (
          <Banner tone="warn">
            <p>
              There is no webhook secret (<code>GitHub.WebhookSecret</code>): every delivery is answered 503, and
              changes are only found by looking.
            </p>
          </Banner>
        )
      }
    >
      {rows.length === 0 && <None isFiltered={outcome !== ''} />}
      {rows.length > 0 && (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: scrollable regions must be focusable (WCAG 2.1.1)
        <section class={`scroll ${error.value === null ? '' : 'stale'}`} aria-label="Log of deliveries" tabIndex={0}>
          <table class="table">
            <thead>
              <tr>
                {columns.map((column) => (
                  <th key={column} scope="col" class={/Took|Again|Received/.test(column) ? 'number' : undefined}>
                    {column}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {rows.map((delivery) => (
                <Row key={delivery.deliveryId} delivery={delivery} now={app.now.value} />
              ))}
            </tbody>
          </table>
          {next !== undefined && (
            <p class="further">
              <button type="button" onClick={() => void more()}>
                Older deliveries
              </button>
            </p>
          )}
        </section>
      )}
    </ListView>
  );
}

interface OutcomesProps {
  readonly chosen: string;
  readonly onChoose: (outcome: string | undefined) => void;
}

const Outcomes = ({ chosen, onChoose }: OutcomesProps) => (
  <fieldset class="outcomes">
    <legend class="unseen">Outcome</legend>
    {outcomes.map((outcome) => (
      <button
        key={outcome}
        type="button"
        aria-pressed={chosen === outcome}
        onClick={() => onChoose(chosen === outcome ? undefined : outcome)}
      >
        {outcomeLooks[outcome].word}
      </button>
    ))}
  </fieldset>
);

function Row({ delivery, now }: { readonly delivery: Delivery; readonly now: number }) {
  const { deliveryId, event, action, repositoryKey, number, sender, outcome, reason, receivedAt, tookMs } = delivery;
  return (
    <tr title={deliveryId}>
      <td>
        <Pill look={outcomeLooks[outcome]} />
      </td>
      <td class="mono">
        {event}
        {action !== undefined && `.${action}`}
      </td>
      <td class="about">
        {repositoryKey === undefined ? '–' : repositoryName(repositoryKey)}
        {number !== undefined && `#${number}`}
      </td>
      <td class="reason" title={reason}>
        {reason === undefined ? <span class="quiet">–</span> : reasonWords(reason)}
      </td>
      <td>{sender ?? <span class="quiet">–</span>}</td>
      <td class="number">{tookMs.toLocaleString(undefined, { maximumFractionDigits: 1 })} ms</td>
      <td class="number" title="How often it was delivered again">
        {delivery.redeliveries === 0 ? '–' : counted(delivery.redeliveries, 'time')}
      </td>
      <td class="number" title={clockTime(Date.parse(receivedAt))}>
        <Moment at={receivedAt} now={now} />
      </td>
    </tr>
  );
}

function None({ isFiltered }: { readonly isFiltered: boolean }) {
  if (isFiltered) return <Empty title="No delivery with this outcome" />;
  return (
    <Empty title="Nothing was delivered yet">
      <p>
        In the settings of the GitHub App, the webhook address is this server’s name with{' '}
        <code>/api/v1/sources/github/webhook</code> behind it, the content type <code>application/json</code>, and the
        secret that of <code>GitHub.WebhookSecret</code>. GitHub sends a ping once the webhook is saved.
      </p>
    </Empty>
  );
}
