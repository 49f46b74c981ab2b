import type { TraceEvent } from '../../../../protocol/index.ts';
import type { App } from '../../../app/app.ts';
import { href } from '../../../app/router.ts';
import { copyText } from '../../../parts/copy.tsx';
import { Skeleton } from '../../../parts/empty.tsx';
import { Fact, FactList } from '../../../parts/fact-list.tsx';
import { Glyph } from '../../../parts/glyphs.tsx';
import { JsonTree } from '../../../parts/json-tree.tsx';
import { bothTimes, clockTime } from '../../../parts/time.ts';
import { paths } from '../paths.ts';
import { span as spell } from '../words.ts';
import type { Bodies } from './bodies.ts';
import { type TraceEntry, textOf } from './entry.ts';
import { toggleTerm } from './filter.ts';
import { nameOf } from './kinds.tsx';
import { indexOf } from './list.tsx';
import { lengthOf, type Span } from './model.ts';
import type { Trace } from './store.ts';

/** Details of the selection: its facts, its full texts, and the recorded events. */
export function Detail({ app, trace, bodies }: { readonly app: App; readonly trace: Trace; readonly bodies: Bodies }) {
  const span = trace.view.value === 'list' ? undefined : trace.selected.value;
  const id = trace.selectedId.value;
  const entry = entryOfId(trace, id);
  if (!entry) return null;
  const ids = span ? [...new Set([span.id, span.endId])].filter((each) => each !== undefined && each > 0) : [entry.id];
  const title = span ? nameOf(span) : entry.type;
  return (
    <aside class="drawer detail" aria-label={`Details of ${title}`}>
      <header>
        <h2 class="cut">{title}</h2>
        <button
          type="button"
          class="bare"
          aria-label="Close the details"
          onClick={() => {
            trace.selectedId.value = undefined;
          }}
        >
          <Glyph name="close" />
        </button>
      </header>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: scrollable regions must be focusable (WCAG 2.1.1) */}
      <section class="scroll" tabIndex={0} aria-label="Facts, texts and events">
        <Facts trace={trace} entry={entry} span={span} />
        {(ids as number[]).map((each) => (
          <Whole key={each} app={app} trace={trace} bodies={bodies} id={each} />
        ))}
      </section>
    </aside>
  );
}

function entryOfId(trace: Trace, id: number | undefined): TraceEntry | undefined {
  trace.version.value;
  const { entries } = trace.model.value;
  return entries[indexOf(entries, id)];
}

interface FactsProps {
  readonly trace: Trace;
  readonly entry: TraceEntry;
  readonly span: Span | undefined;
}

function Facts({ trace, entry, span }: FactsProps) {
  const start = span?.start ?? entry.at;
  const took = span && span.kind !== 'moment' ? lengthOf(span, trace.now.value) : entry.durationMs;
  return (
    <FactList>
      <Fact name="At">
        <time title={bothTimes(start)}>{clockTime(start)}</time>{' '}
        <span class="quiet">+{spell(start - trace.bounds.value.from)}</span>
      </Fact>
      {took !== undefined && (
        <Fact name="Took">
          {spell(took)}
          {span?.end === undefined && span?.state === 'open' ? ', still running' : ''}
        </Fact>
      )}
      <FilterFact trace={trace} title="Type" name="type" value={entry.type} />
      <FilterFact trace={trace} title="Turn" name="turn" value={entry.turnId} />
      <FilterFact trace={trace} title="Tool" name="tool" value={entry.tool ?? span?.tool} />
      {entry.callId !== undefined && <Fact name="Call">{entry.callId}</Fact>}
      <Fact name="Event">{entry.id}</Fact>
    </FactList>
  );
}

interface FilterFactProps {
  readonly trace: Trace;
  readonly title: string;
  readonly name: 'type' | 'turn' | 'tool';
  readonly value: string | undefined;
}

function FilterFact({ trace, title, name, value }: FilterFactProps) {
  if (value === undefined) return null;
  return (
    <Fact name={title}>
      <button
        type="button"
        class="value mono"
        aria-label={`Filter by ${name}:${value}`}
        onClick={() => {
          trace.filterText.value = toggleTerm(trace.filterText.peek(), { name, value, isExcluded: false });
        }}
      >
        {value}
      </button>
    </Fact>
  );
}

interface WholeProps {
  readonly app: App;
  readonly trace: Trace;
  readonly bodies: Bodies;
  readonly id: number;
}

/** One event in full. */
function Whole({ app, trace, bodies, id }: WholeProps) {
  const body = bodies.of(id).value;
  if (body.is === 'loading') return <Skeleton rows={3} />;
  if (body.is === 'failed') {
    return (
      <p class="body-fault danger" role="alert">
        This event could not be fetched: {body.message}{' '}
        <button type="button" onClick={() => bodies.retry(id)}>
          Try again
        </button>
      </p>
    );
  }
  const { event } = body;
  const text = textOf(event.type, event.data);
  return (
    <section class="whole" aria-label={`Event ${id}: ${event.type}`}>
      <h3>
        <code>{event.type}</code>
        <CopyButtons app={app} trace={trace} event={event} />
      </h3>
      {text !== '' && <pre>{text}</pre>}
      <details>
        <summary>Raw event</summary>
        <JsonTree value={parsed(event)} label="Event as JSON" />
      </details>
    </section>
  );
}

/** Parses arguments and results, which are often JSON in a text. */
function parsed(event: TraceEvent): unknown {
  const data = Object.fromEntries(Object.entries(event.data).map(([name, value]) => [name, unpacked(value)]));
  return { ...event, data };
}

function unpacked(value: unknown): unknown {
  if (typeof value !== 'string' || !/^\s*[[{]/.test(value)) return value;
  try {
    return JSON.parse(value);
  } catch {
    return value;
  }
}

function CopyButtons({ app, trace, event }: Omit<WholeProps, 'id' | 'bodies'> & { readonly event: TraceEvent }) {
  const { sessionKey } = trace;
  const link = () => {
    const to = href({
      view: 'sessions',
      path: [sessionKey],
      query: { view: trace.view.peek(), event: String(event.id) },
    });
    return new URL(to, location.href).href;
  };
  return (
    <span class="copies">
      <button type="button" class="bare" onClick={() => copyText(app, JSON.stringify(event, null, 2), 'Event')}>
        JSON
      </button>
      <button type="button" class="bare" onClick={() => copyText(app, link(), 'Link')}>
        Link
      </button>
      <button
        type="button"
        class="bare"
        onClick={() => copyText(app, app.api.curl(paths.event(sessionKey, event.id)), 'Command')}
      >
        curl
      </button>
    </span>
  );
}
