import { defaults } from '../../../protocol/index.ts';
import { ModelError } from '../../model.ts';
import { type ChatAnswer, notACompletion } from './chat-answer.ts';
import { cutFault } from './errors.ts';
import { SseLines } from './sse-lines.ts';
import { TextTemplate } from './text-template.ts';

/** A body that is read as a whole. */
export class TextBody {
  readonly #limit: number;
  readonly #chunks: Buffer[] = [];
  #size = 0;

  constructor(limit: number) {
    this.#limit = limit;
  }

  get text(): string {
    return Buffer.concat(this.#chunks).toString('utf8');
  }

  /** Adds a chunk. Returns true, without storing it, when the body exceeds the limit. */
  push(chunk: Buffer): boolean {
    this.#size += chunk.length;
    if (this.#size > this.#limit) return true;
    this.#chunks.push(chunk);
    return false;
  }
}

/** A shorter body is the beginning of an event: `data:`. */
const leastEventBytes = 5;

/**
 * The body of an answer: an event stream, or one JSON document. The request and the header do not count: the
 * first byte decides.
 */
export class AnswerBody {
  readonly #answer: ChatAnswer;
  readonly #template = new TextTemplate();
  readonly #lines = new SseLines((data) => this.#event(data), {
    endOf: (text, at) => this.#template.endOf(text, at),
    take: () => this.#answer.speak(this.#template.spoken),
  });
  #whole: TextBody | undefined;
  #hasBegun = false;
  #hasEvents = false;
  /** The body began with a comment, as only event streams do. */
  #hasComment = false;
  #isDone = false;
  #isEnding = false;
  /** Bytes so far. */
  #size = 0;

  constructor(answer: ChatAnswer) {
    this.#answer = answer;
  }

  /** Whether the answer is complete, even if the connection should break now. */
  get isComplete(): boolean {
    return this.#isDone || this.#answer.hasFinishReason;
  }

  /** Takes in a chunk. Returns whether the answer is complete. */
  push(chunk: Buffer): boolean {
    this.#hasBegun ||= this.#begin(chunk);
    this.#size += chunk.length;
    if (this.#size > defaults.upstream.streamBytes) {
      throw new ModelError('answerTooLong', `The upstream sent more than ${defaults.upstream.streamBytes} bytes.`);
    }
    if (!this.#whole) this.#lines.push(chunk);
    else if (this.#whole.push(chunk)) {
      throw new ModelError('upstreamProtocol', 'The answer of the upstream is too long.', { isRetryable: false });
    }
    return this.#isDone;
  }

  /**
   * @param isMarked the upstream marked the end of its body; false: it just closed the connection
   * @param finishesAnswers earlier answers of the upstream had a finish reason or `[DONE]`: one without either is cut
   * @throws ModelError when the answer is not whole
   */
  end(isMarked: boolean, finishesAnswers: boolean): void {
    this.#isEnding = true;
    if (!this.#hasBegun) throw cutFault();
    if (this.#whole) this.#event(this.#whole.text);
    else this.#lines.end();
    if (!this.#hasEvents) throw this.#hasComment || this.#size < leastEventBytes ? cutFault() : notACompletion();
    const isWhole =
      this.#whole !== undefined || this.isComplete || (isMarked && !finishesAnswers && this.#answer.canEndHere);
    if (!isWhole) throw cutFault();
    this.#answer.end();
  }

  /** Some upstreams send line ends, as a sign of life, before a document. */
  #begin(chunk: Buffer): boolean {
    const first = chunk.find((byte) => byte > 0x20);
    if (first === undefined) return false;
    this.#hasComment = first === 0x3a;
    if (first === 0x7b || first === 0x5b) this.#whole = new TextBody(defaults.upstream.answerBytes);
    return true;
  }

  #event(data: string): void {
    this.#hasEvents = true;
    if (this.#template.endOf(data, 0) === data.length) this.#answer.speak(this.#template.spoken);
    else if (data === '[DONE]' || data.trim() === '[DONE]') this.#isDone = true;
    else if (data !== '') this.#document(data);
  }

  #document(data: string): void {
    let value: unknown;
    try {
      value = JSON.parse(data);
    } catch {
      this.#notADocument(data);
      return;
    }
    if (this.#answer.read(value)) this.#template.learn(data, value);
  }

  /** Several events without an empty line between them, the place where the connection broke off, or garbage. */
  #notADocument(data: string): void {
    if (this.#whole) throw notACompletion();
    if (data.includes('\n')) for (const line of data.split('\n')) this.#event(line);
    else throw this.#isEnding ? cutFault() : notACompletion();
  }
}
