import { visible } from '../../../lib/browser.ts';
import { dashboardPaths } from '../../../protocol/browser.ts';
import type { App } from '../../app/app.ts';
import { href } from '../../app/router.ts';
import { copyText } from '../../parts/copy.tsx';
import { duration, humanName, timeOfDay } from '../../parts/format.ts';
import { Glyph } from '../../parts/glyphs.tsx';
import { Mark } from '../../parts/icons.tsx';
import { JsonTree } from '../../parts/json-tree.tsx';
import { bothTimes } from '../../parts/time.ts';
import type { Look } from '../../parts/tone.ts';
import type { FirehoseEntry } from './firehose.ts';

/** Looks by the event type; the first match wins. */
const looks: readonly (readonly [pattern: RegExp, look: Look])[] = [
  [/failed|error|unhealthy/, { tone: 'danger', shape: 'cross' }],
  [/exited|gap|requested/, { tone: 'warn', shape: 'triangle' }],
  [/started|starting|stopping/, { tone: 'progress', shape: 'arc' }],
  [/completed|running|recovered/, { tone: 'ok', shape: 'disc' }],
];
const plain: Look = { tone: 'neutral', shape: 'ring' };

/** Looks of notifications by their severity. */
const severities: Readonly<Record<string, Look>> = {
  info: plain,
  success: { tone: 'ok', shape: 'disc' },
  warning: { tone: 'warn', shape: 'triangle' },
  error: { tone: 'danger', shape: 'cross' },
};

interface EventData {
  readonly status?: unknown;
  readonly health?: unknown;
  readonly severity?: unknown;
}

/** Look of an event. A failed turn does not look like a success, although its type is `completed`. */
function lookOfEntry({ type, fields }: FirehoseEntry): Look {
  const data = fields['data'] as EventData | undefined;
  const severity = severities[String(data?.severity)];
  if (severity) return severity;
  if (data?.status === 'failed' || data?.health === 'failing') return { tone: 'danger', shape: 'cross' };
  if (data?.status === 'cancelled' || data?.health === 'degraded') return { tone: 'warn', shape: 'triangle' };
  return looks.find(([pattern]) => pattern.test(type))?.[1] ?? plain;
}

/** One event in a line: time, type, origin, and the beginning of its data. */
export function EventRow({ entry }: { readonly entry: FirehoseEntry }) {
  if (entry.isGap) return <div class="event gap warn">{gapText(entry)}</div>;
  const { tone, shape } = lookOfEntry(entry);
  return (
    <div class="event">
      <time class="mono quiet" dateTime={new Date(entry.at).toISOString()}>
        {timeOfDay(new Date(entry.at))}
      </time>
      <span class={`kind ${tone}`}>
        <Mark tone={tone} shape={shape} />
        <span class="cut">{entry.type}</span>
      </span>
      <span class="whose cut">{subjectOf(entry)}</span>
      <span class="quiet cut gist">{gistOf(entry)}</span>
    </div>
  );
}

const gapText = ({ type, data }: FirehoseEntry): string =>
  type === 'gap' ? data : 'The server no longer holds the events of this time.';

/** Origin of an event: tool and session of a trace, workspace of the Hub's event. */
function subjectOf({ fields }: FirehoseEntry): string {
  const { tool, sessionKey, workspacePath } = fields as Readonly<Record<string, unknown>> & {
    readonly tool?: unknown;
    readonly sessionKey?: unknown;
    readonly workspacePath?: unknown;
  };
  if (typeof workspacePath === 'string') return workspacePath.split(/[/\\]/).filter(Boolean).at(-1) ?? workspacePath;
  return [tool, sessionKey].filter((each) => typeof each === 'string').join(' · ');
}

/** Fields with a column of their own. */
const columns: ReadonlySet<string> = new Set([
  'at',
  'id',
  'kind',
  'type',
  'tool',
  'sessionKey',
  'workspacePath',
  'data',
]);
/** Fields whose value is a sentence. */
const sentences: ReadonlySet<string> = new Set(['title', 'body', 'message', 'text', 'error']);

/** The event's own data in words; opened, the event shows all of it. */
function gistOf({ fields, data }: FirehoseEntry): string {
  const { data: inner } = fields;
  if (Object.keys(fields).length === 0) return visible(data.slice(0, 300), { multiline: false });
  const own = typeof inner === 'object' && inner !== null ? Object.entries(inner) : [];
  const others = Object.entries(fields).filter(([name]) => !columns.has(name));
  return visible([...own, ...others].flatMap(phraseOf).join(' · ').slice(0, 300), { multiline: false });
}

/** A plain value with its name; other values are left out. */
function phraseOf([name, value]: [string, unknown]): readonly string[] {
  if (typeof value === 'string' && sentences.has(name)) return value === '' ? [] : [value];
  if (typeof value === 'number' && name.endsWith('Ms')) return [`${humanName(name)} ${duration(value)}`];
  const isPlain = typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean';
  return isPlain && value !== '' ? [`${humanName(name)} ${value}`] : [];
}

/** Unchanged event as indented JSON. */
export function jsonOf({ data, fields }: FirehoseEntry): string {
  return Object.keys(fields).length > 0 ? JSON.stringify(fields, null, 2) : data;
}

/** All of one event, beside the list. */
export function EventDetails({
  app,
  entry,
  onClose,
}: {
  readonly app: App;
  readonly entry: FirehoseEntry;
  readonly onClose: () => void;
}) {
  const { sessionKey, id } = entry.fields as { readonly sessionKey?: unknown; readonly id?: unknown };
  const isTrace = typeof sessionKey === 'string';
  return (
    <aside class="drawer" aria-label="Selected event">
      <header>
        <h2>{entry.type}</h2>
        <button type="button" class="bare" aria-label="Close" title="Close (Esc)" onClick={onClose}>
          <Glyph name="close" />
        </button>
      </header>
      <div class="scroll inside">
        <p class="quiet">{bothTimes(entry.at)}</p>
        <p class="tools">
          <button type="button" onClick={() => copyText(app, jsonOf(entry), 'Event')}>
            Copy JSON
          </button>
          {isTrace && (
            <button
              type="button"
              onClick={() => copyText(app, app.api.curl(eventPath(sessionKey, String(id))), 'Command')}
            >
              Copy as curl
            </button>
          )}
          {isTrace && (
            <a
              class="button"
              href={href({
                view: 'sessions',
                path: [sessionKey],
                query: { event: typeof id === 'number' ? String(id) : '' },
              })}
            >
              Show in its session
            </a>
          )}
        </p>
        {Object.keys(entry.fields).length > 0 ? (
          <JsonTree value={entry.fields} label="Data of the event" />
        ) : (
          <pre>{entry.data}</pre>
        )}
      </div>
    </aside>
  );
}

const eventPath = (sessionKey: string, id: string): string =>
  dashboardPaths.sessionEvent
    .replace(':sessionKey', encodeURIComponent(sessionKey))
    .replace(':id', encodeURIComponent(id));
