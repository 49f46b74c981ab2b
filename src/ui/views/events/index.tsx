/** The events view: every event of the server, unchanged, to read, filter, hold, copy and save. */
import { useSignal } from '@preact/signals';
import { useLayoutEffect, useMemo, useRef } from 'preact/hooks';
import { dashboardPaths } from '../../../protocol/browser.ts';
import type { RecentEvent, RecentEvents } from '../../../protocol/index.ts';
import type { App } from '../../app/app.ts';
import type { StreamEvent } from '../../app/stream.ts';
import { useAnnouncer } from '../../parts/announce.ts';
import { copyText } from '../../parts/copy.tsx';
import { download, fileName } from '../../parts/download.ts';
import { Empty } from '../../parts/empty.tsx';
import { Glyph } from '../../parts/glyphs.tsx';
import { ListView } from '../../parts/list-view.tsx';
import { type ListHandle, VirtualList } from '../../parts/virtual-list.tsx';
import { EventDetails, EventRow } from './event-row.tsx';
import './events.css';
import { parseFilter } from './filter.ts';
import { Firehose, type FirehoseEntry } from './firehose.ts';
import { useEventKeys } from './keys.ts';

/** Events that are stored while the view is open. */
const bound = 10_000;
const rowHeights = { compact: 28, comfortable: 36 } as const;

export default function EventsView({ app }: { readonly app: App }) {
  const { firehose, said, redraw, older } = useFirehose(app);
  const route = app.router.route.value;
  const filter = route.query['q'] ?? '';
  const list = useRef<ListHandle | null>(null);
  const chosen = useSignal<FirehoseEntry | null>(null);
  const isAtEnd = useSignal(true);
  const seenUpTo = useSignal(0);
  useMemo(() => firehose.find(parseFilter(filter)), [firehose, filter]);

  const { shown } = firehose;
  const selected = chosen.value ? indexOf(shown, chosen.value.seq) : -1;
  const newer = isAtEnd.value ? 0 : shown.length - 1 - lastIndexUpTo(shown, seenUpTo.value);
  const select = (index: number) => {
    chosen.value = shown[index] ?? null;
  };
  const togglePause = () => {
    if (firehose.isPaused) firehose.resume();
    else firehose.pause();
    redraw();
  };
  const exportLines = () =>
    download(fileName('events', 'jsonl'), shown.map((entry) => `${entry.data}\n`).join(''), 'application/jsonl');
  useEventKeys(app, {
    togglePause,
    move: (by) => select(Math.min(shown.length - 1, Math.max(0, selected + by))),
    exportLines,
    chosen: () => chosen.peek(),
    close: () => {
      chosen.value = null;
      list.current?.focus();
    },
  });

  return (
    <ListView
      app={app}
      class="events"
      title="Events"
      filter={{
        label: 'Filter events',
        placeholder: 'type:tool. tool:Exec "no such file" -retry',
        text: filter,
        onText: (q) => app.router.set({ q }),
        summary: `${shown.length.toLocaleString()} of ${firehose.size.toLocaleString()}`,
      }}
      tools={
        <Buttons app={app} firehose={firehose} older={older} togglePause={togglePause} exportLines={exportLines} />
      }
      notices={
        firehose.evicted > 0 && (
          <p class="banner neutral">
            {firehose.evicted.toLocaleString()} earlier events were let go: this page keeps the last{' '}
            {bound.toLocaleString()}.
          </p>
        )
      }
    >
      <div class={chosen.value ? 'both' : 'alone'}>
        {shown.length === 0 ? (
          <NothingYet app={app} isFiltered={filter !== ''} />
        ) : (
          <Tail
            app={app}
            firehose={firehose}
            selected={selected}
            onSelect={select}
            newer={newer}
            onAtEnd={(atEnd) => {
              isAtEnd.value = atEnd;
              seenUpTo.value = shown.at(-1)?.seq ?? 0;
            }}
            handle={list}
          />
        )}
        {chosen.value && (
          <EventDetails
            app={app}
            entry={chosen.value}
            onClose={() => {
              chosen.value = null;
            }}
          />
        )}
      </div>
      <p class="unseen" role="status">
        {said}
      </p>
    </ListView>
  );
}

interface ButtonsProps {
  readonly app: App;
  readonly firehose: Firehose;
  /** Fetches earlier events; undefined: the first event is loaded. */
  readonly older: (() => void) | undefined;
  readonly togglePause: () => void;
  readonly exportLines: () => void;
}

function Buttons({ app, firehose, older, togglePause, exportLines }: ButtonsProps) {
  return (
    <>
      {older && (
        <button type="button" onClick={older}>
          Older events
        </button>
      )}
      <button type="button" aria-pressed={firehose.isPaused} onClick={togglePause} title="Pause or resume (p)">
        <Glyph name={firehose.isPaused ? 'play' : 'pause'} />
        {firehose.isPaused ? `Paused · ${firehose.unseen.toLocaleString()} waiting` : 'Pause'}
      </button>
      <button
        type="button"
        onClick={exportLines}
        disabled={firehose.shown.length === 0}
        title="Save the shown events (x)"
      >
        <Glyph name="save" />
        JSON lines
      </button>
      <button type="button" class="bare" onClick={() => copyText(app, streamCurl(app), 'Command')} title="Copy as curl">
        <Glyph name="copy" />
        curl
      </button>
    </>
  );
}

interface TailProps {
  readonly app: App;
  readonly firehose: Firehose;
  /** Index of the selected event; -1: none. */
  readonly selected: number;
  readonly onSelect: (index: number) => void;
  /** Number of events below the visible ones. */
  readonly newer: number;
  readonly onAtEnd: (atEnd: boolean) => void;
  readonly handle: { current: ListHandle | null };
}

/** List of the events, which follows the newest one. */
function Tail({ app, firehose, selected, onSelect, newer, onAtEnd, handle }: TailProps) {
  const { shown } = firehose;
  return (
    <div class="tail">
      <VirtualList
        label="Events, oldest first"
        count={shown.length}
        rowHeight={rowHeights[app.preferences.rows.value]}
        rowKey={(index) => shown[index]?.seq ?? index}
        renderRow={(index) => {
          const entry = shown[index];
          return entry && <EventRow entry={entry} />;
        }}
        selected={selected}
        onSelect={onSelect}
        followsTail={!firehose.isPaused}
        onAtEnd={onAtEnd}
        handle={handle}
      />
      {newer > 0 && (
        <button type="button" class="main newer" onClick={() => handle.current?.scrollToEnd()}>
          <Glyph name="down" />
          {newer.toLocaleString()} new
        </button>
      )}
    </div>
  );
}

/** The events since the view was opened, redrawn at most once a frame however fast they come. */
function useFirehose(app: App) {
  const firehose = useMemo(() => new Firehose(bound), []);
  const version = useSignal(0);
  /** Fetches earlier events; undefined: the first event is loaded. */
  const older = useSignal<(() => void) | undefined>(undefined);
  const announcer = useAnnouncer(sentence);
  const redraw = () => {
    version.value += 1;
  };
  // Together with the first frame, so that no event is missed in between.
  useLayoutEffect(() => {
    let frame = 0;
    const redrawSoon = () => {
      frame ||= requestAnimationFrame(() => {
        frame = 0;
        redraw();
      });
    };
    const abort = new AbortController();
    let hasBegun = false;
    const stop = app.live.listen('events', {
      onReset: () => {
        if (hasBegun) firehose.gap('The connection was restarted: events may be missing here.');
        // Not before the reset: events between the answer and the start of the stream would be missing.
        else void fetchOlder();
        hasBegun = true;
        redrawSoon();
      },
      onEvents: (events) => {
        const added = firehose.push(events);
        announcer.note('new', added.length);
        announcer.note('failed', added.filter(({ type }) => isFailure(type)).length);
        redrawSoon();
      },
    });
    const fetchOlder = async (before?: number) => {
      const { events, next } = await recent(app, abort.signal, before);
      firehose.begin(events);
      older.value = next === undefined ? undefined : () => void fetchOlder(next);
      redrawSoon();
    };
    return () => {
      abort.abort();
      stop();
      cancelAnimationFrame(frame);
    };
  }, [app, firehose]);
  // Read here, so that the component that uses it is drawn again.
  version.value;
  return { firehose, said: announcer.said, redraw, older: older.value };
}

const isFailure = (type: string): boolean => /failed|error|exited|unhealthy/.test(type);

function sentence(counts: ReadonlyMap<string, number>): string {
  const fresh = counts.get('new') ?? 0;
  const failed = counts.get('failed') ?? 0;
  return `${fresh} new ${fresh === 1 ? 'event' : 'events'}${failed > 0 ? `, ${failed} failed` : ''}`;
}

interface Earlier {
  readonly events: readonly StreamEvent[];
  /** Where older ones begin; absent at the first one. */
  readonly next?: number | undefined;
}

const nothing: Earlier = { events: [] };
const pageSize = 500;

/** Last events, oldest first, so that the view does not begin empty: the ring of a Hub, the traces of a workspace. */
async function recent(app: App, signal: AbortSignal, before?: number): Promise<Earlier> {
  const kind = app.page.peek()?.kind;
  try {
    if (kind === 'hub') {
      const events = await app.api.get<readonly RecentEvent[]>('/v1/events/recent', signal);
      return { events: events.map(({ id, ...event }) => ({ id, event: event.kind, data: JSON.stringify(event) })) };
    }
    if (kind !== 'workspace') return nothing;
    const query = new URLSearchParams({
      limit: String(pageSize),
      ...(before !== undefined && { before: String(before) }),
    });
    const { events, next } = await app.api.get<RecentEvents>(`${dashboardPaths.events}?${query}`, signal);
    const oldestFirst = [...events].reverse();
    return {
      events: oldestFirst.map((each) => ({ id: String(each.id), event: each.type, data: JSON.stringify(each) })),
      next,
    };
  } catch {
    // The stream reports whether the server can be reached.
    return nothing;
  }
}

function NothingYet({ app, isFiltered }: { readonly app: App; readonly isFiltered: boolean }) {
  if (isFiltered) {
    return (
      <Empty title="No event fits the filter">
        <p>New ones are shown as they come.</p>
        <button type="button" onClick={() => app.router.set({ q: '' })}>
          Remove the filter
        </button>
      </Empty>
    );
  }
  const isHub = app.page.value?.kind === 'hub';
  return (
    <Empty
      title="Nothing has happened yet"
      command={isHub ? 'oratorio up --init <dir>' : 'oratorio exec "What is in here?"'}
    >
      <p>
        {isHub
          ? 'Events of agent servers are shown here as they happen. Start one:'
          : 'Events of agents are shown here as they happen. Ask one something:'}
      </p>
    </Empty>
  );
}

const streamCurl = (app: App): string => {
  const path = app.page.peek()?.kind === 'workspace' ? `/dashboard${dashboardPaths.eventStream}` : '/v1/events';
  return app.api.curl(path).replace('curl ', 'curl -N ');
};

/** Where the entry with this number is; -1: not shown. */
function indexOf(entries: readonly FirehoseEntry[], seq: number): number {
  const at = lastIndexUpTo(entries, seq);
  return entries[at]?.seq === seq ? at : -1;
}

/** Index of the last entry whose number is not beyond `seq`, by binary search: numbers rise. -1: none. */
function lastIndexUpTo(entries: readonly FirehoseEntry[], seq: number): number {
  let low = 0;
  let high = entries.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((entries[middle]?.seq ?? 0) <= seq) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}
