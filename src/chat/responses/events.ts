import { stepsOf } from '../activity.ts';
import type { OutputItem, ResponseState } from './log.ts';

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
function wireItem(responseId: string, item: OutputItem, place: number, status: ItemStatus, text?: string): object {
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

/** An item under way. */
interface OpenItem {
  readonly item: OutputItem;
  readonly place: number;
  readonly at: EventPlace;
  /** Absent before its first piece. */
  frame?: PieceFrame;
  sent: number;
}

const pieceEvents = {
  message: (at: EventPlace) =>
    new PieceFrame('response.output_text.delta', { ...at, content_index: 0, delta: '', logprobs: [] }),
  reasoning: (at: EventPlace) =>
    new PieceFrame('response.reasoning_summary_text.delta', { ...at, summary_index: 0, delta: '' }),
  function: (at: EventPlace) => new PieceFrame('response.function_call_arguments.delta', { ...at, delta: '' }),
};

/** Text of an event up to its number. */
const beforeNumber = (type: string): string => `event: ${type}\ndata: {"type":"${type}","sequence_number":`;

/** Frame of the pieces of one item around their numbers and texts: only these are serialised for each piece. */
class PieceFrame {
  readonly #beforeNumber: string;
  readonly #beforeText: string;
  readonly #end: string;

  constructor(type: string, fields: object) {
    const [before = '', end = ''] = JSON.stringify(fields).split('"delta":""');
    this.#beforeNumber = beforeNumber(type);
    this.#beforeText = `,${before.slice(1)}"delta":`;
    this.#end = `${end}\n\n`;
  }

  with(sequenceNumber: number, text: string): string {
    return `${this.#beforeNumber}${sequenceNumber}${this.#beforeText}${JSON.stringify(text)}${this.#end}`;
  }
}

const isCall = ({ kind }: OutputItem): boolean => kind === 'function' || kind === 'custom';

const endingOf = ({ status }: ResponseState): string =>
  status === 'completed' || status === 'incomplete' ? `response.${status}` : 'response.failed';

/** Events of a response in order, as numbered frames. */
export class ResponseFrames {
  readonly #state: ResponseState;
  readonly #after: number;
  readonly #open = new Map<number, OpenItem>();
  #next: number;
  /** Index of the next step of the response. */
  #step = 0;
  #hasBegun = false;
  #hasEnded = false;
  #frames = '';

  /** @param after the last sequence number that the reader has */
  constructor(state: ResponseState, after = -1) {
    this.#state = state;
    this.#after = after;
    this.#next = state.head.first;
  }

  /**
   * Frames of all current events that were not taken before.
   *
   * @param latest the last piece of text that was added; undefined: unknown
   */
  take(latest?: string): string {
    const { steps, status } = this.#state;
    this.#frames = '';
    if (!this.#hasBegun) this.#begin();
    for (; this.#step < steps.length; this.#step += 2) {
      this.#write(steps[this.#step] ?? -1, steps[this.#step + 1] ?? 0, latest);
    }
    if (status !== 'in_progress' && !this.#hasEnded) this.#end();
    return this.#frames;
  }

  #begin(): void {
    this.#hasBegun = true;
    const fields = JSON.stringify({ response: responseBody(this.#state, true) });
    this.#add('response.created', fields);
    this.#add('response.in_progress', fields);
  }

  #end(): void {
    this.#hasEnded = true;
    for (const opened of this.#open.values()) this.#endItem(opened);
    this.#add(endingOf(this.#state), { response: responseBody(this.#state) });
  }

  /** @param place index of an item; −1: `count` is the index of an activity */
  #write(place: number, count: number, latest: string | undefined): void {
    if (place === -1) {
      this.#add('oratorio:activity', { x_agent: this.#state.activities[count] });
      return;
    }
    const opened = this.#open.get(place) ?? this.#beginItem(place);
    if (!opened) return;
    const { item, at, sent } = opened;
    const end = sent + count;
    opened.sent = end;
    // The text of a custom call is known once the arguments around it are complete.
    if (count === 0 || item.kind === 'custom') return;
    const number = this.#next++;
    if (number <= this.#after) return;
    opened.frame ??= pieceEvents[item.kind](at);
    // A slice of a text under way copies all of it: V8 holds it as a tree of pieces.
    const isLatest = latest?.length === count && end === item.text.length;
    this.#frames += opened.frame.with(number, isLatest ? latest : item.text.slice(sent, end));
  }

  #beginItem(place: number): OpenItem | undefined {
    const { head, items } = this.#state;
    const item = items[place];
    if (!item) return undefined;
    // Pieces of several calls may alternate, so calls end with the response.
    for (const other of this.#open.values()) if (!isCall(other.item)) this.#endItem(other);
    const opened = { item, place, sent: 0, at: { item_id: itemId(head.id, item, place), output_index: place } };
    this.#open.set(place, opened);
    this.#add('response.output_item.added', {
      output_index: place,
      item: wireItem(head.id, item, place, 'in_progress'),
    });
    if (item.kind === 'message') {
      this.#add('response.content_part.added', { ...opened.at, content_index: 0, part: textPart('') });
    } else if (item.kind === 'reasoning') {
      this.#add('response.reasoning_summary_part.added', { ...opened.at, summary_index: 0, part: summaryPart('') });
    }
    return opened;
  }

  #endItem({ item, place, at, sent }: OpenItem): void {
    this.#open.delete(place);
    const text = item.text.slice(0, sent);
    switch (item.kind) {
      case 'message':
        this.#add('response.output_text.done', { ...at, content_index: 0, text, logprobs: [] });
        this.#add('response.content_part.done', { ...at, content_index: 0, part: textPart(text) });
        break;
      case 'reasoning':
        this.#add('response.reasoning_summary_text.done', { ...at, summary_index: 0, text });
        this.#add('response.reasoning_summary_part.done', { ...at, summary_index: 0, part: summaryPart(text) });
        break;
      case 'function':
        this.#add('response.function_call_arguments.done', { ...at, name: item.call?.name, arguments: text });
        break;
      case 'custom': {
        const input = customInput(text);
        this.#add('response.custom_tool_call_input.delta', { ...at, delta: input });
        this.#add('response.custom_tool_call_input.done', { ...at, input });
        break;
      }
    }
    const status = item.isDropped ? 'incomplete' : 'completed';
    this.#add('response.output_item.done', {
      output_index: place,
      item: wireItem(this.#state.head.id, item, place, status, text),
    });
  }

  /** @param fields an object, or its JSON */
  #add(type: string, fields: object | string): void {
    const number = this.#next++;
    if (number <= this.#after) return;
    const json = typeof fields === 'string' ? fields : JSON.stringify(fields);
    this.#frames += `${beforeNumber(type)}${number},${json.slice(1)}\n\n`;
  }
}
