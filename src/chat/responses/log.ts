import type { TokenUsage } from '../../protocol/index.ts';
import type { Activity } from '../activity.ts';
import type { CallPiece } from '../client-calls.ts';
import { chatErrors, type ErrorObject, errorObjectOf } from '../errors.ts';
import type { Outcome } from '../watcher.ts';

/** An item of the output. */
export interface OutputItem {
  readonly kind: 'reasoning' | 'message' | 'function' | 'custom';
  /** Text of a message or a thought, or the arguments of a call. */
  text: string;
  readonly call?: { readonly id: string; readonly name: string };
  /** The model broke off in this item, so the output leaves it out. */
  isDropped?: true;
}

/** Facts of a request that the response repeats or needs. */
export interface ResponseHead {
  readonly id: string;
  /** Seconds since the epoch. */
  readonly created: number;
  readonly model: string;
  /** Fields of the request, as on the wire. */
  readonly fields: Readonly<Record<string, unknown>>;
  /** Names of the caller's custom tools, which take text. */
  readonly customTools: readonly string[];
  /** System messages in the inputs of this request and the earlier requests. */
  readonly system: readonly string[];
  /** The client may read the response later. */
  readonly isStored: boolean;
  /** The turn does not end with its client. */
  readonly isBackground: boolean;
  /** Sequence number of the first event. */
  readonly first: number;
}

export type ResponseStatus = 'in_progress' | 'completed' | 'incomplete' | 'failed' | 'cancelled';

/** State of a response, from which every event of its stream can be rebuilt. Stored as JSON. */
export interface ResponseState {
  readonly head: ResponseHead;
  readonly items: OutputItem[];
  readonly activities: Activity[];
  /** Pieces in order, as pairs of numbers: an item and its count of new characters, or −1 and an activity. */
  readonly steps: number[];
  status: ResponseStatus;
  /** Seconds since the epoch. */
  completed?: number;
  finish?: Outcome['finish'];
  usage?: TokenUsage | undefined;
  error?: ErrorObject;
}

/** Sequence numbers for each process; the next process begins above them. */
const numbersPerProcess = 1_000_000;

/** Head of a response whose stored turn this process writes again. */
export const restarted = (head: ResponseHead): ResponseHead => ({ ...head, first: head.first + numbersPerProcess });

/** Records the pieces of a turn as a response. An ended response does not change. */
export class ResponseLog {
  readonly state: ResponseState;
  /** Index of the message or thought that is being written; −1: none. */
  #open = -1;
  /** Item indexes of calls, by their index in the answer. */
  #calls: number[] = [];

  /** @param stored the state of an ended response */
  constructor(head: ResponseHead, stored?: ResponseState) {
    this.state = stored ?? { head, items: [], activities: [], steps: [], status: 'in_progress' };
  }

  get isEnded(): boolean {
    return this.state.status !== 'in_progress';
  }

  /** Starts another message of the model. */
  beginMessage(): void {
    this.#open = -1;
  }

  text(text: string): void {
    this.#write('message', text);
  }

  reasoning(text: string): void {
    this.#write('reasoning', text);
  }

  call({ index, begins, arguments: text }: CallPiece): void {
    if (this.isEnded) return;
    const { items, head } = this.state;
    if (begins) {
      const kind = head.customTools.includes(begins.name) ? 'custom' : 'function';
      this.#calls[index] = items.push({ kind, text: '', call: { id: begins.id, name: begins.name } }) - 1;
      this.#open = -1;
    }
    const place = this.#calls[index];
    if (place !== undefined) this.#grow(place, text);
  }

  activity(activity: Activity, line: string): void {
    if (this.isEnded) return;
    this.state.steps.push(-1, this.state.activities.push(activity) - 1);
    this.reasoning(line);
  }

  /** Drops the message and all calls except `kept` (by id), because the model broke off. */
  discard(kept: ReadonlySet<string>): void {
    const message = this.state.items[this.#open];
    if (message?.kind === 'message') message.isDropped = true;
    this.#open = -1;
    this.#keep(kept);
  }

  /** @param calls ids of the complete calls */
  end({ finish, usage, error }: Outcome, calls: ReadonlySet<string>): void {
    if (this.isEnded) return;
    const { state } = this;
    this.#keep(calls);
    state.finish = finish;
    state.usage = usage;
    state.completed = Math.floor(Date.now() / 1000);
    if (error) state.error = errorObjectOf(error);
    state.status = statusOf(finish, error?.code);
  }

  #keep(calls: ReadonlySet<string>): void {
    const { items } = this.state;
    for (const item of items) if (item.call && !calls.has(item.call.id)) item.isDropped = true;
    this.#calls = this.#calls.filter((place) => items[place]?.isDropped !== true);
  }

  #write(kind: OutputItem['kind'], text: string): void {
    if (text === '' || this.isEnded) return;
    const { items } = this.state;
    if (items[this.#open]?.kind !== kind) this.#open = items.push({ kind, text: '' }) - 1;
    this.#grow(this.#open, text);
  }

  #grow(place: number, text: string): void {
    const item = this.state.items[place];
    if (!item) return;
    item.text += text;
    this.state.steps.push(place, text.length);
  }
}

function statusOf(finish: Outcome['finish'], error: string | undefined): ResponseStatus {
  if (error === chatErrors.turnInterrupted.code) return 'cancelled';
  if (error !== undefined) return 'failed';
  return finish === 'length' || finish === 'contentFilter' ? 'incomplete' : 'completed';
}
