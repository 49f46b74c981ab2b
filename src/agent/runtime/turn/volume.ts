import { defaults } from '../../../protocol/index.ts';
import { ModelError, type ModelEvent } from '../../model.ts';
import type { TurnItems } from './items.ts';

const { turnTextBytes, turnArgumentBytes, turnItems, answerCalls } = defaults.agent;
const { turnBytes, openCalls } = defaults.externalAgent;

/** Counts the output of the model in one turn: a sender without an end must not fill memory, store and clients. */
export class TurnVolume {
  readonly #items: Pick<TurnItems, 'count'>;
  readonly #tooLong: (limit: string) => Error;
  #bytes = 0;
  #textBytes = 0;
  #argumentBytes = 0;
  readonly #calls = new Set<string>();

  /** @param tooLong error for output beyond `limit` */
  constructor(items: Pick<TurnItems, 'count'>, tooLong: (limit: string) => Error = tooLongAnswer) {
    this.#items = items;
    this.#tooLong = tooLong;
  }

  beginAnswer(): void {
    this.#calls.clear();
  }

  /** @throws ModelError (answerTooLong) when the event exceeds the budget of the turn */
  take(event: ModelEvent): void {
    if (event.type === 'text' || event.type === 'thinking') this.addText(event.text);
    else if (event.type === 'toolCallDelta') {
      this.addArguments(event.argumentsDelta);
      this.#countCall(event.callId);
    } else if (event.type === 'toolCall') this.#countCall(event.call.callId);
    this.checkItems();
  }

  /** @throws the error of `tooLong`, like the methods below */
  addText(text: string): void {
    this.#textBytes += Buffer.byteLength(text);
    if (this.#textBytes > turnTextBytes) throw this.#tooLong(`${turnTextBytes} bytes of text`);
  }

  addArguments(text: string): void {
    this.#argumentBytes += Buffer.byteLength(text);
    if (this.#argumentBytes > turnArgumentBytes) throw this.#tooLong(`${turnArgumentBytes} bytes of arguments`);
  }

  /** Adds a whole message of an external agent. */
  addBytes(bytes: number): void {
    this.#bytes += bytes;
    if (this.#bytes > turnBytes) throw this.#tooLong(`${turnBytes} bytes`);
  }

  /** @param open calls of an external agent without an end */
  checkOpen(open: number): void {
    if (open > openCalls) throw this.#tooLong(`${openCalls} calls without an end`);
  }

  checkItems(): void {
    if (this.#items.count > turnItems) throw this.#tooLong(`${turnItems} items`);
  }

  #countCall(callId: string): void {
    this.#calls.add(callId);
    if (this.#calls.size > answerCalls) throw this.#tooLong(`${answerCalls} calls in one answer`);
  }
}

const tooLongAnswer = (limit: string): ModelError =>
  new ModelError(
    'answerTooLong',
    `The model sent more than ${limit}, which is the limit of a turn. Its answer was cut off.`,
  );
