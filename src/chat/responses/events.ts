import { stepsOf } from '../activity.ts';
import type { OutputItem, ResponseState } from './log.ts';

/** An event of a stream, without its sequence number. */
type Event = { readonly type: string } & Readonly<Record<string, unknown>>;

const responsePrefix = 'resp_';
const prefixes = { reasoning: 'rs_', message: 'msg_', function: 'fc_', custom: 'ctc_' } as const;

/** Id of an item, which contains the id of its response. */
const itemId = (responseId: string, { kind }: OutputItem, place: number): string =>
  `${prefixes[kind]}${responseId.slice(responsePrefix.length)}_${place}`;

/** Response and index in the id of an item; undefined for any other text. */
export function placeOfItem(id: string): { readonly responseId: string; readonly place: number } | undefined {
  const match = /^(?:rs|msg|fc|ctc)_([0-9a-f]{32})_(\d{1,6})$/.exec(id);
  return match?.[1] === undefined ? undefined : { responseId: `${responsePrefix}${match[1]}`, place: Number(match[2]) };
}

type ItemStatus = 'in_progress' | 'completed' | 'incomplete';
const textPart = (text: string) => ({ type: 'output_text', text, annotations: [], logprobs: [] });
const summaryPart = (text: string) => ({ type: 'summary_text', text });

/** Input of a custom tool, which the model wrote as the argument of a function. */
export function customInput(written: string): string {
  try {
    const { input } = JSON.parse(written) as { readonly input?: unknown };
    return typeof input === 'string' ? input : written;
  } catch {
    return written;
  }
}

/** An item on the wire. @param text its text so far; undefined before its first part */
function wireItem(
  responseId: string,
  item: OutputItem,
  place: number,
  status: ItemStatus,
  text?: string,
): Event & { readonly id: string } {
  const id = itemId(responseId, item, place);
  const { call } = item;
  if (item.kind === 'reasoning') {
    return { type: 'reasoning', id, status, summary: text === undefined ? [] : [summaryPart(text)] };
  }
  if (item.kind === 'message' || !call) {
    return { type: 'message', id, status, role: 'assistant', content: text === undefined ? [] : [textPart(text)] };
  }
  const named = { id, status, call_id: call.id, name: call.name };
  if (item.kind === 'custom') {
    return { type: 'custom_tool_call', ...named, input: text === undefined ? '' : customInput(text) };
  }
  return { type: 'function_call', ...named, arguments: text ?? '' };
}

const incompleteReasons = { length: 'max_output_tokens', contentFilter: 'content_filter' } as const;

/** The response on the wire. @param isBegun the response at the beginning of its stream, without output */
export function responseBody(state: ResponseState, isBegun = false): object {
  const { head, items, usage, error, finish, activities } = state;
  const status = isBegun ? 'in_progress' : state.status;
  const isCut = status === 'incomplete' && (finish === 'length' || finish === 'contentFilter');
  const last = items.length - 1;
  const output = items.flatMap((item, place) => {
    if (item.isDropped) return [];
    const itemStatus = status === 'in_progress' && place === last ? 'in_progress' : 'completed';
    return [wireItem(head.id, item, place, isCut && place === last ? 'incomplete' : itemStatus, item.text)];
  });
  const steps = stepsOf(activities);
  return {
    id: head.id,
    object: 'response',
    created_at: head.created,
    completed_at: status === 'completed' ? (state.completed ?? null) : null,
    status,
    model: head.model,
    ...head.fields,
    output: isBegun ? [] : output,
    error: !isBegun && error ? { code: error.code, message: error.message } : null,
    incomplete_details: isCut ? { reason: incompleteReasons[finish] } : null,
    usage: isBegun || !usage ? null : usageOf(usage),
    ...(!isBegun && { x_agent: { toolCalls: steps.length, steps } }),
  };
}

function usageOf(usage: NonNullable<ResponseState['usage']>): object {
  return {
    input_tokens: usage.inputTokens,
    input_tokens_details: { cached_tokens: usage.cachedInputTokens ?? 0 },
    output_tokens: usage.outputTokens,
    output_tokens_details: { reasoning_tokens: usage.reasoningTokens ?? 0 },
    total_tokens: usage.totalTokens,
  };
}

/** Fields of the events of an item. */
interface EventPlace {
  readonly item_id: string;
  readonly output_index: number;
}

/** An item whose end was not yielded yet. */
interface OpenItem {
  readonly item: OutputItem;
  readonly place: number;
  readonly at: EventPlace;
  /** Absent before its first piece. */
  frame?: PieceFrame;
  sent: number;
}

const pieceEvents = {
  message: (at: EventPlace) => ({
    type: 'response.output_text.delta',
    ...at,
    content_index: 0,
    delta: '',
    logprobs: [],
  }),
  reasoning: (at: EventPlace) => ({
    type: 'response.reasoning_summary_text.delta',
    ...at,
    summary_index: 0,
    delta: '',
  }),
  function: (at: EventPlace) => ({ type: 'response.function_call_arguments.delta', ...at, delta: '' }),
};

/** Frame of the pieces of one item around their numbers and texts: only these are serialised for each piece. */
class PieceFrame {
  readonly #beforeNumber: string;
  readonly #beforeText: string;
  readonly #end: string;

  constructor(event: Event) {
    const [before = '', end = ''] = JSON.stringify(event).split('"delta":""');
    const head = `{"type":"${event.type}",`;
    this.#beforeNumber = `event: ${event.type}\ndata: ${head}"sequence_number":`;
    this.#beforeText = `,${before.slice(head.length)}"delta":`;
    this.#end = `${end}\n\n`;
  }

  with(sequenceNumber: number, text: string): string {
    return `${this.#beforeNumber}${sequenceNumber}${this.#beforeText}${JSON.stringify(text)}${this.#end}`;
  }
}

/** A piece of the text of an item. */
interface Piece {
  readonly type?: undefined;
  readonly frame: PieceFrame;
  readonly text: string;
}

const isCall = ({ kind }: OutputItem): boolean => kind === 'function' || kind === 'custom';

/**
 * Events of a response in order. Yields undefined while there is no further event; `next` then takes the piece of text that was added
 * since, if the caller has it.
 */
function* eventsOf(state: ResponseState): Generator<Event | Piece | undefined, void, string | undefined> {
  const { head, items, steps, activities } = state;
  const open = new Map<number, OpenItem>();

  function* begin(opened: OpenItem): Generator<Event> {
    const { item, place } = opened;
    // Pieces of several calls may alternate, so calls end with the response.
    for (const other of [...open.values()]) if (!isCall(other.item)) yield* end(other);
    open.set(place, opened);
    yield {
      type: 'response.output_item.added',
      output_index: place,
      item: wireItem(head.id, item, place, 'in_progress'),
    };
    if (item.kind === 'message') {
      yield { type: 'response.content_part.added', ...opened.at, content_index: 0, part: textPart('') };
    } else if (item.kind === 'reasoning') {
      yield { type: 'response.reasoning_summary_part.added', ...opened.at, summary_index: 0, part: summaryPart('') };
    }
  }

  /** @param latest the last piece of text that was added; undefined: unknown */
  function pieceOf(opened: OpenItem, length: number, latest: string | undefined): Piece | undefined {
    const { item, at, sent } = opened;
    const end = sent + length;
    opened.sent = end;
    // The text of a custom call is known once the arguments around it are complete.
    if (length === 0 || item.kind === 'custom') return undefined;
    opened.frame ??= new PieceFrame(pieceEvents[item.kind](at));
    // A slice of a text under way copies all of it: V8 holds it as a tree of pieces.
    const isLatest = latest?.length === length && end === item.text.length;
    return { frame: opened.frame, text: isLatest ? latest : item.text.slice(sent, end) };
  }

  function* end(opened: OpenItem): Generator<Event> {
    const { item, place, sent } = opened;
    open.delete(place);
    const text = item.text.slice(0, sent);
    switch (item.kind) {
      case 'message':
        yield { type: 'response.output_text.done', ...opened.at, content_index: 0, text, logprobs: [] };
        yield { type: 'response.content_part.done', ...opened.at, content_index: 0, part: textPart(text) };
        break;
      case 'reasoning':
        yield { type: 'response.reasoning_summary_text.done', ...opened.at, summary_index: 0, text };
        yield {
          type: 'response.reasoning_summary_part.done',
          ...opened.at,
          summary_index: 0,
          part: summaryPart(text),
        };
        break;
      case 'function':
        yield { type: 'response.function_call_arguments.done', ...opened.at, name: item.call?.name, arguments: text };
        break;
      case 'custom': {
        const input = customInput(text);
        yield { type: 'response.custom_tool_call_input.delta', ...opened.at, delta: input };
        yield { type: 'response.custom_tool_call_input.done', ...opened.at, input };
        break;
      }
    }
    const status = item.isDropped ? 'incomplete' : 'completed';
    yield {
      type: 'response.output_item.done',
      output_index: place,
      item: wireItem(head.id, item, place, status, text),
    };
  }

  const begun = responseBody(state, true);
  yield { type: 'response.created', response: begun };
  yield { type: 'response.in_progress', response: begun };
  let latest: string | undefined;
  for (let step = 0; ; step += 2) {
    while (step >= steps.length && state.status === 'in_progress') latest = yield undefined;
    const place = steps[step];
    if (place === undefined) break;
    const count = steps[step + 1] ?? 0;
    if (place === -1) {
      yield { type: 'oratorio:activity', x_agent: activities[count] };
      continue;
    }
    const item = items[place];
    if (!item) continue;
    const known = open.get(place);
    const opened = known ?? {
      ...{ item, place, sent: 0 },
      at: { item_id: itemId(head.id, item, place), output_index: place },
    };
    if (!known) yield* begin(opened);
    const piece = pieceOf(opened, count, latest);
    if (piece) yield piece;
  }
  for (const opened of [...open.values()]) yield* end(opened);
  yield { type: endingOf(state), response: responseBody(state) };
}

const endingOf = ({ status }: ResponseState): string =>
  status === 'completed' || status === 'incomplete' ? `response.${status}` : 'response.failed';

/** Frames of a response, numbered. */
export class ResponseFrames {
  readonly #events: ReturnType<typeof eventsOf>;
  readonly #after: number;
  #next: number;

  /** @param after the last sequence number that the reader has */
  constructor(state: ResponseState, after = -1) {
    this.#events = eventsOf(state);
    this.#after = after;
    this.#next = state.head.first;
  }

  /**
   * Frames of all current events that were not taken before.
   *
   * @param latest the last piece of text that was added; undefined: unknown
   */
  take(latest?: string): string {
    let frames = '';
    for (;;) {
      const { value, done } = this.#events.next(latest);
      if (done || value === undefined) return frames;
      const sequence_number = this.#next++;
      if (sequence_number <= this.#after) continue;
      if (value.type === undefined) {
        frames += value.frame.with(sequence_number, value.text);
        continue;
      }
      // Inserts the number into the text after the type, the first member: cheaper than a copy of the event.
      const { type } = value;
      const text = JSON.stringify(value);
      const typeEnd = `{"type":"${type}"`.length;
      frames += `event: ${type}\ndata: ${text.slice(0, typeEnd)},"sequence_number":${sequence_number}${text.slice(typeEnd)}\n\n`;
    }
  }
}
