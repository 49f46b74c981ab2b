import { defaults } from '../../protocol/index.ts';
import { ModelError, type ModelEvent } from '../model.ts';
import type { TurnItems } from './turn-items.ts';

const { turnTextBytes, turnArgumentBytes, turnItems, answerCalls } = defaults.agent;

/** Counts the output of the model in one turn: a provider that sends without end must not fill memory, store and clients. */
export class TurnVolume {
  readonly #items: Pick<TurnItems, 'count'>;
  #textBytes = 0;
  #argumentBytes = 0;
  readonly #calls = new Set<string>();

  constructor(items: Pick<TurnItems, 'count'>) {
    this.#items = items;
  }

  beginAnswer(): void {
    this.#calls.clear();
  }

  /** @throws ModelError (answerTooLong) when the event exceeds the budget of the turn */
  take(event: ModelEvent): void {
    if (event.type === 'text' || event.type === 'thinking') {
      this.#textBytes += Buffer.byteLength(event.text);
      if (this.#textBytes > turnTextBytes) throw tooLong(`${turnTextBytes} bytes of text`);
    } else if (event.type === 'toolCallDelta') {
      this.#argumentBytes += Buffer.byteLength(event.argumentsDelta);
      if (this.#argumentBytes > turnArgumentBytes) throw tooLong(`${turnArgumentBytes} bytes of arguments`);
      this.#countCall(event.callId);
    } else if (event.type === 'toolCall') this.#countCall(event.call.callId);
    if (this.#items.count > turnItems) throw tooLong(`${turnItems} items`);
  }

  #countCall(callId: string): void {
    this.#calls.add(callId);
    if (this.#calls.size > answerCalls) throw tooLong(`${answerCalls} calls in one answer`);
  }
}

const tooLong = (limit: string): ModelError =>
  new ModelError(
    'answerTooLong',
    `The model sent more than ${limit}, which is the limit of a turn. Its answer was cut off.`,
  );
