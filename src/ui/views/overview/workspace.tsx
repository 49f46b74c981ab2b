import type { ComponentChildren } from 'preact';
import { useEffect, useMemo } from 'preact/hooks';
import { dollars } from '../../../lib/browser.ts';
import { modelWords, stateWordOf, toneOfState } from '../../../protocol/browser.ts';
import type {
  DashboardSession,
  DashboardSummary,
  EventSummary,
  ModelInUse,
  ModuleState,
  WorkspaceCondition,
} from '../../../protocol/index.ts';
import type { App } from '../../app/app.ts';
import { href } from '../../app/router.ts';
import { CommandLine } from '../../parts/copy.tsx';
import { Skeleton } from '../../parts/empty.tsx';
import { age, humanName } from '../../parts/format.ts';
import { Mark } from '../../parts/icons.tsx';
import { Banner, FaultBanner } from '../../parts/state-banner.tsx';
import { bothTimes, clockTime, dayTime, distance, zone } from '../../parts/time.ts';
import { lookOfTone, type Shape, type Tone } from '../../parts/tone.ts';
import { entryOf, isFailed } from '../sessions/trace/entry.ts';
import { amount, costOf, counted, span, stateOf, titleOf } from '../sessions/words.ts';
import { Down } from './incident.tsx';
import { Problems } from './problems.tsx';
import { Restriction } from './restriction.tsx';
import { createSummary } from './summary-store.ts';
import { Answering, capital, LastTurn } from './words.tsx';

/** State and activity of the agent server of this workspace. */
export function WorkspaceOverview({ app }: { readonly app: App }) {
  const store = useMemo(() => createSummary(app), [app]);
  useEffect(() => store.start(), [store]);
  const summary = store.summary.value;
  // The Hub reads the database of a workspace that is down.
  const isDown = app.server.base !== '' && app.page.value?.readOnly !== undefined;
  return (
    <div class="view home">
      <FaultBanner error={store.fault.value} at={store.fetchedAt.value} retry={() => void store.refresh()} />
      {summary ? (
        <>
          {isDown ? <Down app={app} /> : <Status app={app} summary={summary} />}
          {summary.condition && (
            <Problems
              problems={summary.condition.problems}
              tone={summary.condition.health === 'failing' ? 'danger' : 'warn'}
            />
          )}
          <Restriction host={app.server.host} path={summary.workspacePath} settings={summary.restrictedSettings} />
          <Losses summary={summary} />
          {/* biome-ignore lint/a11y/noNoninteractiveTabindex: scrollable regions must be focusable (WCAG 2.1.1) */}
          <section class="scroll parts" tabIndex={0} aria-label="Overview">
            <Conversations app={app} sessions={store.sessions.value} />
            <Modules modules={summary.modules} />
            <Counters summary={summary} />
            <Events events={store.events.value} />
          </section>
        </>
      ) : (
        store.fault.value === null && <Skeleton rows={10} />
      )}
    </div>
  );
}

/** Filter of either list. */
const running = { q: 'running', status: 'running' };
/** List of the conversations; a page without authentication has only that of their traces. */
const listOf = (app: App) => (app.page.value?.views.includes('chat') ? 'chat' : 'sessions');

interface StatusProps {
  readonly app: App;
  readonly summary: DashboardSummary;
}

/** Rates the workspace: never better than its last turns, its tools and the connection to it. */
function standingOf({ activeTurns, pendingApprovals, condition }: DashboardSummary, isConnected: boolean) {
  if (!isConnected) return { tone: 'neutral', text: 'Not connected' } as const;
  if (pendingApprovals > 0) return { tone: 'warn', text: `${counted(pendingApprovals, 'approval')} pending` } as const;
  const word = condition === undefined ? 'ready' : wordOf(condition);
  if (word !== 'ready') return { tone: toneOfState(word), text: capital(word) } as const;
  if (activeTurns > 0) return { tone: 'progress', text: `${counted(activeTurns, 'turn')} running` } as const;
  return { tone: 'ok', text: 'Ready' } as const;
}

const wordOf = ({ health, problems }: WorkspaceCondition) =>
  stateWordOf({ state: 'running', phase: 'running', exitCode: null, health, problems });

/** One line with the overall state. */
function Status({ app, summary }: StatusProps) {
  const { activeTurns, pendingApprovals, provider, model, condition } = summary;
  const { tone, text } = standingOf(summary, app.live.connections.events.value.state !== 'reconnecting');
  const { shape } = lookOfTone(tone);
  return (
    <div class="strip status">
      <h1 class="unseen">Overview</h1>
      <p class={`pill ${tone}`} role="status">
        <Mark tone={tone} shape={shape} />
        {text}
      </p>
      {pendingApprovals > 0 && <a href={href({ view: 'chat' })}>Answer in the chat</a>}
      {pendingApprovals > 0 && <span>{counted(activeTurns, 'turn')} running</span>}
      {activeTurns > 0 && <a href={href({ view: listOf(app), query: running })}>Show running turns</a>}
      {condition?.agent && condition.agent.kind !== 'oratorio' ? (
        <span>
          <span class="quiet">Agent</span> <Answering record={condition} />
        </span>
      ) : (
        <span>
          <span class="quiet">Model</span> <b>{modelText(condition?.model ?? null, model, provider)}</b>
        </span>
      )}
      {condition && (
        <span>
          <span class="quiet">Last turn</span> <LastTurn record={condition} now={app.now.value} />
        </span>
      )}
      <span class="push quiet" title={`Process ${summary.pid}, since ${bothTimes(Date.parse(summary.startedAt))}`}>
        {summary.version} · up {age(app.now.value - Date.parse(summary.startedAt))}
      </span>
    </div>
  );
}

/** `gpt-x at api.openai.com`; of an older server the name and the kind of the provider. */
function modelText(inUse: ModelInUse | null, model: string, provider: string): string {
  if (inUse) return modelWords({ ...inUse, name: inUse.name || model });
  return provider === 'demo' ? 'demo (offline)' : model || 'none';
}

/** Text of a fact; times are shown in the browser's time zone. */
const factText = (value: string | number | boolean): string =>
  typeof value === 'string' && /^\d{4}-\d\d-\d\dT/.test(value)
    ? `${dayTime(Date.parse(value))} (${zone()})`
    : String(value)
        .replace(/([a-z])([A-Z])/g, '$1 $2')
        .toLowerCase();

function Losses({ summary: { droppedEvents } }: { readonly summary: DashboardSummary }) {
  if (droppedEvents === 0) return null;
  return (
    <Banner tone="warn">
      <p>
        {counted(droppedEvents, 'trace event')} could not be written, because the disk did not take them. Make room on
        the disk of the workspace; conversations are not affected.
      </p>
    </Banner>
  );
}

const looks: Readonly<Record<string, readonly [Tone, Shape]>> = {
  running: ['ok', 'disc'],
  disabled: ['neutral', 'ring'],
  degraded: ['warn', 'triangle'],
  failed: ['danger', 'cross'],
};

function Modules({ modules }: { readonly modules: readonly ModuleState[] }) {
  return (
    <Part title="Modules">
      <table class="table">
        <thead>
          <tr>
            <th>Module</th>
            <th>State</th>
            <th>Facts</th>
          </tr>
        </thead>
        <tbody>
          {modules.map(({ name, state, reason, url, facts = {} }) => {
            const [tone, shape] = looks[state] ?? ['neutral', 'diamond'];
            return (
              <tr key={name}>
                <td class="name-of-module">{humanName(name)}</td>
                <td>
                  <span class={`pill ${tone}`}>
                    <Mark tone={tone} shape={shape} />
                    {humanName(state)}
                  </span>
                </td>
                <td>
                  {reason !== undefined && <p>{reason}</p>}
                  <span class="quiet mono">
                    {[
                      ...Object.entries(facts).map(([key, value]) => `${humanName(key)} ${factText(value)}`),
                      ...(url === undefined ? [] : [withoutSecret(url)]),
                    ].join(' · ')}
                  </span>
                </td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </Part>
  );
}

/** Removes the query of an address: it may contain a key. */
export const withoutSecret = (url: string): string => url.replace(/[?#].*$/, '');

/** Leaves out counters at zero. */
const isAboveZero = ([, value]: readonly [string, string, boolean?]): boolean =>
  value !== '0' && value !== '–' && value !== '0 ms';

function Counters({ summary }: { readonly summary: DashboardSummary }) {
  const rows: readonly (readonly [string, string, boolean?])[] = [
    ['Conversations', amount(summary.sessionCount)],
    ['Turns', amount(summary.turnCount)],
    ['Failed turns', amount(summary.failedTurnCount), summary.failedTurnCount > 0],
    ['Tool calls', amount(summary.toolCallCount)],
    ['Failed tool calls', amount(summary.toolFailureCount), summary.toolFailureCount > 0],
    ['Errors', amount(summary.errorCount), summary.errorCount > 0],
    ['Approvals', amount(summary.approvalCount)],
    ['Compactions', amount(summary.compactionCount)],
    [
      'Tokens',
      summary.totalTokens === 0 ? '–' : `${amount(summary.inputTokens)} in · ${amount(summary.outputTokens)} out`,
    ],
    ['Cost', costOf(summary)],
    ...(summary.spentTodayUsd === undefined
      ? []
      : [['Spent today, all workspaces', dollars(summary.spentTodayUsd)] as const]),
    ['Failed requests to models', amount(summary.modelFailureCount), summary.modelFailureCount > 0],
    ['Active time', span(summary.turnDurationMs)],
    ['In tools', span(summary.toolDurationMs)],
    ['Longest tool call', span(summary.maxToolDurationMs)],
    ['Waiting for approval', span(summary.approvalWaitMs)],
    ['Events kept', amount(summary.eventCount)],
  ];
  return (
    <Part title="All time" more={<a href={href({ view: 'sessions' })}>Stored traces</a>}>
      <dl class="counters">
        {rows.filter(isAboveZero).map(([name, value, isBad]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd class={isBad ? 'danger' : ''}>{value}</dd>
          </div>
        ))}
      </dl>
    </Part>
  );
}

function Conversations({ app, sessions }: { readonly app: App; readonly sessions: readonly DashboardSession[] }) {
  const listView = listOf(app);
  // A sub-agent has a trace and no place among the conversations.
  const viewOf = ({ parentSessionKey }: DashboardSession) => (parentSessionKey === undefined ? listView : 'sessions');
  return (
    <Part title="Recent conversations" more={<a href={href({ view: listView })}>All conversations</a>}>
      {sessions.length === 0 ? (
        <NothingYet />
      ) : (
        <table class="table">
          <thead>
            <tr>
              <th>Conversation</th>
              <th>State</th>
              <th class="number">Turns</th>
              <th class="number">Last activity</th>
            </tr>
          </thead>
          <tbody>
            {sessions.map((session) => {
              const { word, tone, shape } = stateOf(session);
              return (
                <tr key={session.sessionKey}>
                  <td class="name">
                    <a href={href({ view: viewOf(session), path: [session.sessionKey] })}>{titleOf(session)}</a>
                  </td>
                  <td>
                    <span class={`pill ${tone}`}>
                      <Mark tone={tone} shape={shape} />
                      {word}
                    </span>
                  </td>
                  <td class="number">{amount(session.turnCount)}</td>
                  <td class="number" title={bothTimes(Date.parse(session.lastActivityAt))}>
                    {distance(Date.parse(session.lastActivityAt), app.now.value)}
                  </td>
                </tr>
              );
            })}
          </tbody>
        </table>
      )}
    </Part>
  );
}

function NothingYet() {
  return (
    <div class="nothing">
      <p class="quiet">No conversation yet. This begins one:</p>
      <CommandLine text='oratorio chat "hello"' />
    </div>
  );
}

function Events({ events }: { readonly events: readonly EventSummary[] }) {
  return (
    <Part title="Recent events" more={<a href={href({ view: 'events' })}>All events</a>}>
      {events.length === 0 ? (
        <p class="nothing quiet">Nothing has happened yet.</p>
      ) : (
        <ol class="recent-events">
          {events.map((event) => (
            <li key={event.id}>
              <EventLine event={event} />
            </li>
          ))}
        </ol>
      )}
    </Part>
  );
}

function EventLine({ event }: { readonly event: EventSummary }) {
  const entry = entryOf(event);
  const { type, tool, text, id, at } = entry;
  return (
    <a href={href({ view: 'sessions', path: [event.sessionKey], query: { event: String(id) } })}>
      <time class="quiet mono" title={bothTimes(at)}>
        {clockTime(at)}
      </time>{' '}
      <code class={isFailed(entry) ? 'danger' : ''}>{type}</code> {tool !== undefined && <b>{tool}</b>}{' '}
      <span class="quiet">{text}</span>
    </a>
  );
}

interface PartProps {
  readonly title: string;
  readonly more?: ComponentChildren;
  readonly children: ComponentChildren;
}

const Part = ({ title, more, children }: PartProps) => (
  <section class="part" aria-label={title}>
    <header>
      <h2>{title}</h2>
      {more}
    </header>
    {children}
  </section>
);
