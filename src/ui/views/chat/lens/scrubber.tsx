import { computed } from '@preact/signals';
import { useMemo } from 'preact/hooks';
import { Glyph } from '../../../parts/glyphs.tsx';
import { StateStrip } from '../../../parts/state-strip.tsx';
import { clockTime } from '../../../parts/time.ts';
import { nameOf } from '../../sessions/trace/kinds.tsx';
import type { Span, Turn } from '../../sessions/trace/model.ts';
import type { Trace } from '../../sessions/trace/store.ts';
import type { Cursor, MoveTo } from './cursor.ts';
import { momentAt, placeOf, stopsOf, stripOf } from './segments.ts';
import { workOf } from './work-strip.tsx';

interface ScrubberProps {
  readonly trace: Trace;
  /** Shown moment; undefined: the end. */
  readonly at: number | undefined;
  readonly moveTo: MoveTo;
}

/** Strip of the conversation as a slider over time. Its steps are the starts of bars. */
export function Scrubber({ trace, at: shown, moveTo }: ScrubberProps) {
  const strip = useMemo(
    () =>
      computed(() => {
        trace.version.value;
        return stripOf(trace.model.value, trace.now.value);
      }),
    [trace],
  ).value;
  const session = trace.session.value;
  const { totalMs } = strip;
  if (totalMs <= 0) return null;
  const isLive = shown === undefined;
  const place = shown === undefined ? totalMs : placeOf(strip, shown);
  const go = (at: number) => {
    const moment = momentAt(strip, placeOf(strip, at));
    if (moment) moveTo(momentOf(moment.turn, moment.at));
  };
  const step = (by: 1 | -1) => {
    const stops = stopsOf(strip);
    const at = shown ?? Number.POSITIVE_INFINITY;
    const next = by === 1 ? stops.find((stop) => stop > at) : stops.findLast((stop) => stop < at);
    if (next !== undefined) go(next);
    else if (by === 1) moveTo({});
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const by = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1 }[event.key];
    if (by === undefined) return;
    event.preventDefault();
    step(by > 0 ? 1 : -1);
  };
  return (
    <fieldset class="lens-scrubber" aria-label="Time">
      <button type="button" aria-label="Step back" onClick={() => step(-1)}>
        ‹
      </button>
      <span class="on-strip">
        <StateStrip work={session ? workOf(session) : { totalMs, toolMs: 0, waitMs: 0 }} segments={strip.segments} />
        <input
          type="range"
          aria-label="Moment"
          min={0}
          max={Math.ceil(totalMs)}
          step={1}
          value={place}
          aria-valuetext={isLive ? 'the end' : wordsAt(strip, place)}
          onKeyDown={onKeyDown}
          onInput={(event) => {
            const moment = momentAt(strip, event.currentTarget.valueAsNumber);
            if (moment) moveTo(momentOf(moment.turn, moment.at));
          }}
        />
      </span>
      <button type="button" aria-label="Step forward" disabled={isLive} onClick={() => step(1)}>
        ›
      </button>
      <button type="button" class={isLive ? '' : 'main'} disabled={isLive} onClick={() => moveTo({})}>
        Live <Glyph name="down" />
      </button>
    </fieldset>
  );
}

/** Last bar of a turn that started before or at a moment. */
const barAt = ({ children }: Turn, at: number): Span | undefined => children.findLast(({ start }) => start <= at);

/** Cursor at a moment of a turn, with the call that was running. */
function momentOf(turn: Turn, at: number): Cursor {
  const bar = barAt(turn, at);
  const isCall = bar?.kind === 'tool' && at <= (bar.end ?? at);
  return { turn: turn.turnId, call: isCall ? bar.callId : undefined, at };
}

function wordsAt(strip: ReturnType<typeof stripOf>, place: number): string {
  const moment = momentAt(strip, place);
  if (!moment) return '';
  const bar = barAt(moment.turn, moment.at);
  return `${clockTime(moment.at)}, ${nameOf(bar ?? moment.turn)}`;
}
