import { timeOfDay } from '../../../parts/format.ts';
import { fullState } from '../../../parts/tone.ts';
import { VirtualList } from '../../../parts/virtual-list.tsx';
import { countUntil } from '../moments.ts';
import { type Lane, type Message, sequenceOf } from '../sequence.ts';
import type { PanelProps } from '../store.ts';

/** In CSS pixels. */
const size = { time: 82, lane: 84, row: 46 } as const;

const middleOf = (lane: number): number => size.time + lane * size.lane + size.lane / 2;

/** Messages between actors, time flowing down: a lane for each actor. */
export function SequencePanel({ store, actor, whole }: PanelProps) {
  const base = store.travel.base.value;
  const { lanes, messages } = sequenceOf(base, whole);
  const moment = store.travel.moment.value;
  const passed = moment === null ? messages.length : countUntil(messages, moment);
  if (messages.length === 0) return <p class="quiet none">{actor.title} has received no event yet.</p>;
  return (
    <div class="sequence">
      <VirtualList
        label="Messages, oldest first"
        count={messages.length}
        rowHeight={size.row}
        rowKey={(index) => messages[index]?.n ?? index}
        selected={moment === null ? -1 : passed - 1}
        onSelect={(index) => {
          const message = messages[index];
          if (message) store.travel.look(message);
        }}
        followsTail
        header={<Lanes lanes={lanes} />}
        rowProps={(index) => ({ class: index >= passed ? 'later' : undefined })}
        renderRow={(index) => {
          const message = messages[index];
          return (
            message && (
              <>
                <span class="unseen">{partners(lanes, message)}</span>
                <Row lanes={lanes} message={message} />
              </>
            )
          );
        }}
      />
    </div>
  );
}

/** Sender and receiver, for users who cannot see the lanes. */
function partners(lanes: readonly Lane[], { from, to }: Message): string {
  const titleOf = (id: string) => lanes.find((lane) => lane.id === id)?.title ?? id;
  return from === to ? `${titleOf(to)} itself: ` : `${titleOf(from)} to ${titleOf(to)}: `;
}

function Lanes({ lanes }: { readonly lanes: readonly Lane[] }) {
  return (
    <div class="lanes" style={{ width: `${size.time + lanes.length * size.lane}px` }} aria-hidden="true">
      {lanes.map((lane) => (
        <span
          key={lane.id}
          class={`lane cut ${lane.kind}`}
          style={{ width: `${size.lane}px` }}
          title={`${lane.title} (${lane.kind})`}
        >
          {lane.title.replace(/^.*[/\\](?=[^/\\])/, '')}
        </span>
      ))}
    </div>
  );
}

function Row({ lanes, message }: { readonly lanes: readonly Lane[]; readonly message: Message }) {
  const from = lanes.findIndex(({ id }) => id === message.from);
  const to = lanes.findIndex(({ id }) => id === message.to);
  const width = size.time + lanes.length * size.lane;
  const [start, end] = [middleOf(from), middleOf(to)];
  const isSelf = from === to;
  // Beside the last lane there is no room: its loops are on the other side.
  const side = from === lanes.length - 1 ? -1 : 1;
  const label = isSelf
    ? { x: start + side * 22, anchor: side > 0 ? 'start' : 'end' }
    : { x: (start + end) / 2, anchor: 'middle' };
  return (
    <svg role="presentation" class={`message ${message.states === null ? 'lost' : ''}`} width={width} height={size.row}>
      {lanes.map((lane, index) => (
        <path key={lane.id} class={`life ${lane.kind}`} d={`M${middleOf(index)} 0V${size.row}`} />
      ))}
      <text class="at" x="6" y="26">
        {timeOfDay(new Date(message.at))}
      </text>
      <path
        class="arrow-line"
        d={isSelf ? `M${start} 20h${side * 14}v12h${side * -9}` : `M${start} 26H${end > start ? end - 6 : end + 6}`}
      />
      {message.states === null ? (
        <path class="cross" d={`m${end - 5} 21 10 10m0-10-10 10`} />
      ) : (
        <path class="arrow-head" d={isSelf ? `M${start} 32l${side * 6}-3.5v7z` : arrowHead(end, end > start)} />
      )}
      <text class="event" x={label.x} y={isSelf ? 22 : 20} text-anchor={label.anchor}>
        {message.event}
      </text>
      <text class="then" x={label.x} y={isSelf ? 36 : 40} text-anchor={label.anchor}>
        {message.states === null ? 'no receiver' : fullState(message.states)}
      </text>
    </svg>
  );
}

const arrowHead = (x: number, isRight: boolean): string => `M${x} 26l${isRight ? -8 : 8}-4v8z`;
