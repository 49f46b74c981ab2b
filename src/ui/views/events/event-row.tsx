import { visible } from '../../../lib/browser.ts';
import { dashboardPaths } from '../../../protocol/browser.ts';
import type { App } from '../../app/app.ts';
import { href } from '../../app/router.ts';
import { copyText } from '../../parts/copy.tsx';
import { timeOfDay } from '../../parts/format.ts';
import { Glyph } from '../../parts/glyphs.tsx';
import { Mark } from '../../parts/icons.tsx';
import { JsonTree } from '../../parts/json-tree.tsx';
import { bothTimes } from '../../parts/time.ts';
import type { Look } from '../../parts/tone.ts';
import type { FirehoseEntry } from './firehose.ts';
import { sentenceOf } from './sentences.ts';

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
  readonly stopped?: unknown;
}

/** Look of an event. A failed turn does not look like a success, although its type is `completed`. */
function lookOfEntry({ type, fields }: FirehoseEntry): Look {
  const data = fields['data'] as EventData | undefined;
  const severity = severities[String(data?.severity)];
  if (severity) return severity;
  if (data?.status === 'failed' || data?.health === 'failing') return { tone: 'danger', shape: 'cross' };
  if (data?.status === 'cancelled' || data?.health === 'degraded') return { tone: 'warn', shape: 'triangle' };
  if (data?.health === 'healthy') return { tone: 'ok', shape: 'disc' };
  if (data?.stopped === true) return plain;
  return looks.find(([pattern]) => pattern.test(type))?.[1] ?? plain;
}

const isBad = (tone: Look['tone']): boolean => tone === 'danger' || tone === 'warn';

/** One event in a line: its time, a sentence, and its origin; opened, it shows all data. */
export function EventRow({ entry }: { readonly entry: FirehoseEntry }) {
  if (entry.isGap) return <div class="event gap warn">{gapText(entry)}</div>;
  const { tone, shape } = lookOfEntry(entry);
  return (
    <div class="event">
      <time class="mono quiet" dateTime={new Date(entry.at).toISOString()}>
        {timeOfDay(new Date(entry.at))}
      </time>
      <span class={`said ${isBad(tone) ? tone : ''}`} title={entry.type}>
        <Mark tone={tone} shape={shape} />
        <span class="cut">{visible(sentenceOf(entry), { multiline: false })}</span>
      </span>
      <span class="whose quiet cut">{subjectOf(entry)}</span>
    </div>
  );
}

const gapText = ({ type, data }: FirehoseEntry): string =>
  type === 'gap' ? data : 'The server no longer holds the events of this time.';

/** Origin of an event: conversation of a trace, workspace of the Hub's event. */
function subjectOf({ fields }: FirehoseEntry): string {
  const { sessionKey, workspacePath } = fields as Readonly<Record<'sessionKey' | 'workspacePath', unknown>>;
  if (typeof workspacePath === 'string') return workspacePath.split(/[/\\]/).filter(Boolean).at(-1) ?? workspacePath;
  return typeof sessionKey === 'string' ? sessionKey : '';
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
              Show in its trace
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
