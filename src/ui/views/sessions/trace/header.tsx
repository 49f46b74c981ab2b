import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import type { DashboardSession, SessionPage } from '../../../../protocol/index.ts';
import type { App } from '../../../app/app.ts';
import { href } from '../../../app/router.ts';
import { copyText } from '../../../parts/copy.tsx';
import { Glyph } from '../../../parts/glyphs.tsx';
import { Mark } from '../../../parts/icons.tsx';
import { bothTimes, distance } from '../../../parts/time.ts';
import { paths } from '../paths.ts';
import { amount, costOf, counted, notReported, span as spell, stateOf, titleOf } from '../words.ts';
import { isTurn, lengthOf } from './model.ts';
import { copyAll, saveChromeTrace, saveJsonLines } from './save.ts';
import type { Trace } from './store.ts';

/** Name, state, totals and actions of the session. */
export function Header({ app, trace }: { readonly app: App; readonly trace: Trace }) {
  const session = trace.session.value;
  return (
    <header class="trace-head">
      <div class="strip">
        <Back app={app} trace={trace} />
        <h1 class="cut" title={trace.sessionKey}>
          {session ? titleOf(session) : 'Conversation'}
        </h1>
        {session && <State session={session} />}
        <Kin app={app} trace={trace} />
        <span class="push" />
        <PauseButton trace={trace} />
        <ExportMenu app={app} trace={trace} />
      </div>
      {session && <Totals app={app} trace={trace} session={session} />}
    </header>
  );
}

/** To the conversation. The trace of a sub-agent, and a page without conversations, lead to the list. */
function Back({ app, trace }: { readonly app: App; readonly trace: Trace }) {
  const hasChat = app.page.value?.views.includes('chat') === true;
  const isConversation = hasChat && trace.session.value?.parentSessionKey === undefined;
  return isConversation ? (
    <a class="button plain" href={href({ view: 'chat', path: [trace.sessionKey] })}>
      ← Conversation
    </a>
  ) : (
    <a class="button plain" href={href({ view: 'sessions' })} aria-label="All traces">
      ← Traces
    </a>
  );
}

function State({ session }: { readonly session: DashboardSession }) {
  const { word, tone, shape } = stateOf(session);
  return (
    <span class={`pill ${tone}`}>
      <Mark tone={tone} shape={shape} />
      {word}
    </span>
  );
}

function PauseButton({ trace }: { readonly trace: Trace }) {
  const isPaused = trace.isPaused.value;
  if (!isPaused && !trace.isLive.value) return null;
  return (
    <button type="button" aria-pressed={isPaused} onClick={() => trace.pause(!isPaused)}>
      <Glyph name={isPaused ? 'play' : 'pause'} />
      {isPaused ? `Resume (${counted(trace.waitingCount.value, 'event')} waiting)` : 'Pause'}
    </button>
  );
}

/** Parent of this sub-agent, and its own sub-agents. */
function Kin({ app, trace }: { readonly app: App; readonly trace: Trace }) {
  const children = useSignal<readonly DashboardSession[]>([]);
  const session = trace.session.value;
  const calls = session?.toolCallCount ?? 0;
  useEffect(() => {
    if (calls === 0) return;
    const abort = new AbortController();
    app.api.get<SessionPage>(paths.sessions({ limit: kinLimit }), abort.signal).then(
      ({ sessions }) => {
        children.value = sessions.filter(({ parentSessionKey }) => parentSessionKey === trace.sessionKey);
      },
      () => {
        // Links to relatives are optional: another part of the page reports an unreachable server.
      },
    );
    return () => abort.abort();
  }, [calls === 0, session?.turnCount]);
  return (
    <>
      {session?.parentSessionKey !== undefined && (
        <a class="chip" href={href({ view: 'sessions', path: [session.parentSessionKey] })}>
          Sub-agent of {session.parentSessionKey}
        </a>
      )}
      {children.value.map((child) => (
        <a key={child.sessionKey} class="chip" href={href({ view: 'sessions', path: [child.sessionKey] })}>
          Sub-agent: {titleOf(child)}
        </a>
      ))}
    </>
  );
}

/** The most recently active sessions that are looked through for sub-agents. */
const kinLimit = 200;

interface TotalsProps {
  readonly app: App;
  readonly trace: Trace;
  readonly session: DashboardSession;
}

function Totals({ app, trace, session }: TotalsProps) {
  const withoutHuman = trace.withoutHuman.value;
  const worked = session.turnDurationMs + soFar(trace) - (withoutHuman ? session.approvalWaitMs : 0);
  const { toolFailureCount, errorCount } = session;
  return (
    <dl class="totals">
      <Total name="Model">{session.model ?? '–'}</Total>
      <Total name="Turns">
        {amount(session.turnCount)}
        {session.failedTurnCount > 0 && <span class="danger"> · {amount(session.failedTurnCount)} failed</span>}
      </Total>
      <Total name="Tools">
        {amount(session.toolCallCount)}
        {toolFailureCount > 0 && <span class="danger"> · {amount(toolFailureCount)} failed</span>}
      </Total>
      {errorCount > 0 && (
        <Total name="Errors">
          <span class="danger">{amount(errorCount)}</span>
        </Total>
      )}
      <Total name="Tokens">
        {session.totalTokens === 0
          ? notReported
          : `${amount(session.inputTokens)} in${cachedOf(session)} · ${amount(session.outputTokens)} out`}
      </Total>
      <Total name="Cost">{costOf(session)}</Total>
      {session.modelFailureCount > 0 && (
        <Total name="Failed requests">
          <span class="danger">{amount(session.modelFailureCount)}</span>
        </Total>
      )}
      <Total name="Active time">
        {spell(Math.max(0, worked))}{' '}
        {session.approvalWaitMs > 0 && (
          <button
            type="button"
            class="chip"
            aria-pressed={withoutHuman}
            onClick={() => {
              trace.withoutHuman.value = !withoutHuman;
            }}
          >
            without waiting for a person ({spell(session.approvalWaitMs)})
          </button>
        )}
      </Total>
      <Total name="Events">{amount(session.eventCount)}</Total>
      <Total name="Last activity">
        <time title={bothTimes(Date.parse(session.lastActivityAt))}>
          {distance(Date.parse(session.lastActivityAt), app.now.value)}
        </time>
      </Total>
      {trace.version.value > 0 && trace.model.value.isCoarse && (
        <Total name="Recorder">
          <span class="chip" title="An older recorder wrote this: one bar may stand for more than one segment or call.">
            coarse trace
          </span>
        </Total>
      )}
    </dl>
  );
}

/** Duration of the running turn, which the sums do not contain yet, in milliseconds; 0: none runs. */
function soFar(trace: Trace): number {
  trace.version.value;
  const last = trace.model.value.roots.findLast(isTurn);
  return last && last.end === undefined && trace.isLive.value ? lengthOf(last, trace.now.value) : 0;
}

const Total = ({ name, children }: { readonly name: string; readonly children: preact.ComponentChildren }) => (
  <div>
    <dt>{name}</dt>
    <dd>{children}</dd>
  </div>
);

function ExportMenu({ app, trace }: { readonly app: App; readonly trace: Trace }) {
  const { sessionKey } = trace;
  return (
    <details class="menu">
      <summary class="button">
        <Glyph name="save" /> Export
      </summary>
      <ul>
        <li>
          <button type="button" class="bare" onClick={() => saveJsonLines(app, trace)}>
            Save as JSON lines
          </button>
        </li>
        <li>
          <button type="button" class="bare" onClick={() => saveChromeTrace(app, trace)}>
            Save as Chrome trace (Perfetto, DevTools)
          </button>
        </li>
        <li>
          <button type="button" class="bare" onClick={() => copyAll(app, trace)}>
            Copy as JSON
          </button>
        </li>
        <li>
          <button
            type="button"
            class="bare"
            onClick={() => copyText(app, app.api.curl(paths.events(sessionKey)), 'Command')}
          >
            Copy as curl
          </button>
        </li>
        <li>
          <button type="button" class="bare" onClick={() => copyText(app, location.href, 'Link')}>
            Copy link
          </button>
        </li>
      </ul>
    </details>
  );
}

const cachedOf = ({ cachedInputTokens }: DashboardSession): string =>
  cachedInputTokens > 0 ? ` (${amount(cachedInputTokens)} cached)` : '';
