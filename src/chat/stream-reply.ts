import type { ReplyStream } from '../http/index.ts';
import type { Activity } from './activity.ts';
import type { ChatTurn, Outcome, Watcher } from './chat-turn.ts';
import { Chunks, doneFrame } from './chunks.ts';
import type { CallPiece } from './client-calls.ts';
import type { Ticker, Ticking } from './ticker.ts';

export interface StreamReplyOptions {
  readonly turn: ChatTurn;
  readonly includesUsage: boolean;
  readonly heartbeatMs: number;
  readonly ticker: Ticker;
}

/**
 * A streamed answer. Nothing is sent before there is something to say, or the client would become impatient: until then
 * an error can have its own status.
 */
export class StreamReply implements Watcher, Ticking {
  readonly isStream = true;
  /** Resolves when the answer should begin, or there will be none. */
  readonly isDue: Promise<void>;
  readonly #options: StreamReplyOptions;
  readonly #chunks: Chunks;
  #stream: ReplyStream | undefined;
  /** Text from before the stream was open: one frame per piece, as afterwards. */
  #held: string;
  #hasEnded = false;
  #beDue: () => void = () => {};
  /** Something was written since the last tick. */
  #hasWritten = false;
  #quietSince = performance.now();

  constructor(options: StreamReplyOptions) {
    const { turn, ticker } = options;
    this.#options = options;
    this.#chunks = new Chunks(turn);
    this.isDue = new Promise((resolve) => {
      this.#beDue = resolve;
    });
    this.#held = this.#chunks.role + this.#soFar();
    turn.watch(this);
    ticker.add(this);
    if (turn.hasSpoken) this.#beDue();
    if (turn.outcome) this.onEnd(turn.outcome);
  }

  /** Writes the present text; later text is written at once. */
  readonly open = (stream: ReplyStream): void => {
    this.#stream = stream;
    this.#write(this.#held);
    this.#held = '';
    if (this.#hasEnded) stream.end();
  };

  /** The client has gone, or gets an error instead. */
  close(): void {
    this.#options.ticker.delete(this);
    this.#options.turn.unwatch(this);
    this.#beDue();
  }

  onText(text: string): void {
    this.#write(this.#chunks.text(text));
  }

  onReasoning(text: string): void {
    this.#write(this.#chunks.reasoning(text));
  }

  onCall(piece: CallPiece): void {
    this.#write(this.#chunks.call(piece));
  }

  onActivity(activity: Activity, line: string): void {
    this.#write(this.#chunks.activity(activity, line));
  }

  onEnd(outcome: Outcome): void {
    this.#options.ticker.delete(this);
    this.#hasEnded = true;
    this.#write(this.#ending(outcome));
    this.#stream?.end();
  }

  tick(now: number): void {
    if (this.#hasWritten) {
      this.#hasWritten = false;
      this.#quietSince = now;
    } else if (now - this.#quietSince >= this.#options.heartbeatMs) {
      this.#quietSince = now;
      if (this.#stream) this.#stream.write(this.#chunks.heartbeat);
      else this.#beDue();
    }
  }

  /** Text of a turn that began before this reader came, in few frames. */
  #soFar(): string {
    const { activities, reasoning, textSoFar, calls } = this.#options.turn;
    return [
      ...activities.map((activity) => this.#chunks.activity(activity, '')),
      reasoning === '' ? '' : this.#chunks.reasoning(reasoning),
      textSoFar === '' ? '' : this.#chunks.text(textSoFar),
      ...calls.map((call, index) => this.#chunks.call({ index, begins: call, arguments: call.arguments })),
    ].join('');
  }

  #ending(outcome: Outcome): string {
    if (outcome.error) return this.#chunks.error(outcome);
    const usage = this.#options.includesUsage && outcome.usage ? this.#chunks.usage(outcome.usage) : '';
    return `${this.#chunks.finish(outcome)}${usage}${doneFrame}`;
  }

  #write(frame: string): void {
    if (!this.#stream) {
      this.#held += frame;
      this.#beDue();
      return;
    }
    this.#hasWritten = true;
    this.#stream.write(frame);
  }
}
