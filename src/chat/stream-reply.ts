import type { ReplyStream } from '../http/index.ts';
import type { Activity } from './activity.ts';
import { Chunks, doneFrame } from './chunks.ts';
import type { Ticker, Ticking } from './ticker.ts';
import type { ChatTurn, ClientCall, Outcome, Watcher } from './turn.ts';

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
  /** Resolves when the answer should begin, or there will be none. */
  readonly isDue: Promise<void>;
  readonly #options: StreamReplyOptions;
  readonly #chunks: Chunks;
  #stream: ReplyStream | undefined;
  #beDue: () => void = () => {};
  /** Something was written since the clock was last looked at. */
  #hasWritten = false;
  #quietSince = performance.now();

  constructor(options: StreamReplyOptions) {
    this.#options = options;
    this.#chunks = new Chunks(options.turn);
    this.isDue = new Promise((resolve) => {
      this.#beDue = resolve;
    });
    options.turn.watch(this);
    options.ticker.add(this);
    if (options.turn.outcome || options.turn.hasSpoken) this.#beDue();
  }

  /** Writes what there is so far; what follows is written as it comes. */
  readonly open = (stream: ReplyStream): void => {
    const { turn } = this.#options;
    this.#stream = stream;
    this.#write(this.#chunks.role);
    for (const activity of turn.activities) this.#write(this.#chunks.activity(activity, ''));
    if (turn.reasoning !== '') this.#write(this.#chunks.reasoning(turn.reasoning));
    if (turn.textSoFar !== '') this.#write(this.#chunks.text(turn.textSoFar));
    for (const [index, call] of turn.calls.entries()) this.#write(this.#chunks.call(call, index));
    if (turn.outcome) this.onEnd(turn.outcome);
  };

  /** The client has gone, or gets an error instead. */
  close(): void {
    this.#options.ticker.delete(this);
    this.#options.turn.unwatch(this);
    this.#beDue();
  }

  onText(text: string): void {
    if (this.#stream) this.#write(this.#chunks.text(text));
    else this.#beDue();
  }

  onReasoning(text: string): void {
    if (this.#stream) this.#write(this.#chunks.reasoning(text));
    else this.#beDue();
  }

  onCall(call: ClientCall, index: number): void {
    if (this.#stream) this.#write(this.#chunks.call(call, index));
    else this.#beDue();
  }

  onActivity(activity: Activity, line: string): void {
    if (this.#stream) this.#write(this.#chunks.activity(activity, line));
    else this.#beDue();
  }

  onEnd(outcome: Outcome): void {
    this.#options.ticker.delete(this);
    this.#beDue();
    if (!this.#stream) return;
    if (outcome.error) this.#write(this.#chunks.error(outcome));
    else {
      this.#write(this.#chunks.finish(outcome));
      if (this.#options.includesUsage && outcome.usage) this.#write(this.#chunks.usage(outcome.usage));
      this.#write(doneFrame);
    }
    this.#stream.end();
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

  #write(frame: string): void {
    this.#hasWritten = true;
    this.#stream?.write(frame);
  }
}
