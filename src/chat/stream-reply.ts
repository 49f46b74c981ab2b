import type { ReplyStream } from '../http/index.ts';
import type { Activity } from './activity.ts';
import type { ChatTurn } from './chat-turn.ts';
import type { CallPiece } from './client-calls.ts';
import type { Ticker, Ticking } from './ticker.ts';
import type { Outcome, Watcher } from './watcher.ts';

/** Frames of a streamed answer. */
export interface Frames {
  /** Begins the answer, with everything that the turn has written so far. */
  soFar(turn: ChatTurn): string;
  text(text: string): string;
  reasoning(text: string): string;
  call(piece: CallPiece): string;
  activity(activity: Activity, line: string): string;
  ending(outcome: Outcome): string;
  /** Empty frame that keeps the connection open. */
  readonly heartbeat: string;
}

export interface StreamReplyOptions {
  readonly turn: ChatTurn;
  readonly frames: Frames;
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
  #stream: ReplyStream | undefined;
  /** Text from before the stream was open: one frame per piece, as afterwards. */
  #held: string;
  #hasEnded = false;
  #beDue: () => void = () => {};
  /** Something was written since the last tick. */
  #hasWritten = false;
  #quietSince = performance.now();

  constructor(options: StreamReplyOptions) {
    const { turn, ticker, frames } = options;
    this.#options = options;
    this.isDue = new Promise((resolve) => {
      this.#beDue = resolve;
    });
    this.#held = frames.soFar(turn);
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
    this.#write(this.#options.frames.text(text));
  }

  onReasoning(text: string): void {
    this.#write(this.#options.frames.reasoning(text));
  }

  onCall(piece: CallPiece): void {
    this.#write(this.#options.frames.call(piece));
  }

  onActivity(activity: Activity, line: string): void {
    this.#write(this.#options.frames.activity(activity, line));
  }

  onEnd(outcome: Outcome): void {
    this.#options.ticker.delete(this);
    this.#hasEnded = true;
    this.#write(this.#options.frames.ending(outcome));
    this.#stream?.end();
  }

  tick(now: number): void {
    if (this.#hasWritten) {
      this.#hasWritten = false;
      this.#quietSince = now;
    } else if (now - this.#quietSince >= this.#options.heartbeatMs) {
      this.#quietSince = now;
      if (this.#stream) this.#stream.write(this.#options.frames.heartbeat);
      else this.#beDue();
    }
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
