import { useEffect } from 'preact/hooks';
import type { DashboardSession, EventPage } from '../../../protocol/index.ts';
import type { App } from '../../app/app.ts';
import { useResource } from '../../app/resource.ts';
import { href } from '../../app/router.ts';
import { copyText } from '../../parts/copy.tsx';
import { Skeleton } from '../../parts/empty.tsx';
import { Fact, FactList } from '../../parts/fact-list.tsx';
import { Glyph } from '../../parts/glyphs.tsx';
import { Mark } from '../../parts/icons.tsx';
import { FaultBanner } from '../../parts/state-banner.tsx';
import { bothTimes, clockTime } from '../../parts/time.ts';
import { paths } from './paths.ts';
import type { SessionTable } from './table-store.ts';
import { entryOf } from './trace/entry.ts';
import { amount, costOf, notReported, span, stateOf, titleOf } from './words.ts';

const lastEvents = 40;

interface PeekProps {
  readonly app: App;
  readonly table: SessionTable;
  readonly session: DashboardSession;
  readonly onRemove: () => void;
}

/** The selected session beside the list: its totals and last events. J and K select the next. */
export function Peek({ app, table, session, onRemove }: PeekProps) {
  const { sessionKey, eventCount } = session;
  const query = { order: 'desc', limit: lastEvents, bodies: 'short' };
  const last = useResource(
    (signal) => app.api.get<EventPage>(paths.events(sessionKey, query), signal),
    [sessionKey, eventCount],
  );
  useEffect(() => {
    last.data.value = null;
  }, [sessionKey]);
  const { word, tone, shape } = stateOf(session);
  const to = href({ view: 'sessions', path: [sessionKey] });
  const readOnly = app.page.value?.readOnly;
  const events = last.data.value?.events;
  return (
    <aside class="drawer peek" aria-label={`Trace of ${titleOf(session)}`}>
      <header>
        <h2 class="cut">{titleOf(session)}</h2>
        <button type="button" class="bare" aria-label="Close the peek" onClick={() => table.select(sessionKey, false)}>
          <Glyph name="close" />
        </button>
      </header>
      <div class="strip">
        <a class="button main" href={to}>
          Open
        </a>
        <button type="button" class="plain" onClick={() => copyText(app, new URL(to, location.href).href, 'Link')}>
          Copy link
        </button>
        <button
          type="button"
          class="plain"
          disabled={readOnly !== undefined || session.isRunning}
          title={readOnly ?? (session.isRunning ? 'A turn runs in it' : 'Delete this trace')}
          onClick={onRemove}
        >
          <Glyph name="bin" /> Delete…
        </button>
      </div>
      <FaultBanner error={last.error.value} at={last.at.value} retry={last.reload} />
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: scrollable regions must be focusable (WCAG 2.1.1) */}
      <section class="scroll" tabIndex={0} aria-label="Totals and last events">
        <FactList>
          <Fact name="State">
            <span class={`pill ${tone}`}>
              <Mark tone={tone} shape={shape} /> {word}
            </span>
          </Fact>
          <Fact name="Key">
            <code>{sessionKey}</code>
          </Fact>
          <Fact name="Model">{session.model ?? '–'}</Fact>
          <Fact name="Turns">{amount(session.turnCount)}</Fact>
          <Fact name="Tools">
            {amount(session.toolCallCount)}, {amount(session.toolFailureCount)} failed
          </Fact>
          <Fact name="Waiting for approval">
            {session.approvalCount === 0
              ? 'no approvals'
              : `${span(session.approvalWaitMs)} for ${amount(session.approvalCount)} approvals`}
          </Fact>
          <Fact name="Tokens">
            {session.totalTokens === 0
              ? notReported
              : `${amount(session.inputTokens)} in · ${amount(session.outputTokens)} out`}
          </Fact>
          <Fact name="Cost">{costOf(session)}</Fact>
        </FactList>
        <h3 class="peek-title">Last events, newest first</h3>
        {events ? (
          <ol class="last-events">
            {events.map((event) => {
              const { id, type, text, tool } = entryOf(event);
              return (
                <li key={id}>
                  <a href={href({ view: 'sessions', path: [sessionKey], query: { event: String(id) } })}>
                    <time class="quiet mono" title={bothTimes(Date.parse(event.at))}>
                      {clockTime(Date.parse(event.at))}
                    </time>{' '}
                    <code>{type}</code> {tool !== undefined && <b>{tool}</b>} <span class="quiet">{text}</span>
                  </a>
                </li>
              );
            })}
          </ol>
        ) : (
          <Skeleton rows={6} />
        )}
      </section>
    </aside>
  );
}
