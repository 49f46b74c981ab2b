import type { HttpError, ReplyStream } from '../http/index.ts';
import { stepsOf } from './activity.ts';
import type { ChatTurn } from './chat-turn.ts';
import { finishReasons, usageOf } from './chunks.ts';
import type { Ticker, Ticking } from './ticker.ts';
import type { Watcher } from './watcher.ts';

/** The body of an answer that is given as a whole (specification §4.1). */
export function completionOf(turn: ChatTurn): object {
  const { id, created, model, text, reasoning, calls, outcome, activities, sessionId } = turn;
  const steps = stepsOf(activities);
  const message = {
    role: 'assistant',
    content: text === '' && calls.length > 0 ? null : text,
    refusal: null,
    ...(reasoning !== '' && { reasoning_content: reasoning }),
    ...(calls.length > 0 && {
      tool_calls: calls.map(({ id, name, arguments: given }) => ({
        id,
        type: 'function',
        function: { name, arguments: given },
      })),
    }),
  };
  return {
    id,
    object: 'chat.completion',
    created,
    model,
    choices: [{ index: 0, message, logprobs: null, finish_reason: finishReasons[outcome?.finish ?? 'stop'] }],
    ...(outcome?.usage && { usage: usageOf(outcome.usage) }),
    x_agent: {
      sessionId: sessionId ?? null,
      toolCalls: steps.length,
      steps,
    },
  };
}

export interface WholeReplyOptions {
  readonly turn: ChatTurn;
  readonly trickleAfterMs: number;
  readonly trickleMs: number;
  readonly ticker: Ticker;
  /** The body of the answer. */
  readonly bodyOf: (turn: ChatTurn) => object;
  /** Called when the body is cut, because the turn failed. */
  readonly onCut: (error: HttpError) => void;
}

const ignore = () => {};

/**
 * An answer that is given as a whole. When it takes long its headers go out before it, and then empty lines, which JSON
 * allows for: clients that hear nothing for minutes give up and ask again. From then on a failure cuts the body: a client
 * that knows only the interface would take every whole body for a success.
 */
export class WholeReply implements Watcher, Ticking {
  readonly isStream = false;
  /** Resolves when the turn has ended, when it takes long, or when the caller has gone. */
  readonly isDue: Promise<void>;
  readonly #options: WholeReplyOptions;
  #stream: ReplyStream | undefined;
  #beDue: () => void = () => {};
  #since = performance.now();

  readonly onText = ignore;
  readonly onReasoning = ignore;
  readonly onCall = ignore;
  readonly onActivity = ignore;

  constructor(options: WholeReplyOptions) {
    this.#options = options;
    this.isDue = new Promise((resolve) => {
      this.#beDue = resolve;
    });
    if (options.turn.outcome) {
      this.#beDue();
      return;
    }
    options.turn.watch(this);
    options.ticker.add(this);
  }

  readonly open = (stream: ReplyStream): void => {
    this.#stream = stream;
    stream.write('\n');
    if (this.#options.turn.outcome) this.onEnd();
  };

  close(): void {
    this.#options.ticker.delete(this);
    this.#options.turn.unwatch(this);
    this.#beDue();
  }

  onEnd(): void {
    this.#options.ticker.delete(this);
    this.#beDue();
    if (!this.#stream) return;
    const { turn, bodyOf, onCut } = this.#options;
    const error = turn.outcome?.error;
    if (error) {
      onCut(error);
      this.#stream.cut();
      return;
    }
    this.#stream.write(JSON.stringify(bodyOf(turn)));
    this.#stream.end();
  }

  tick(now: number): void {
    const { trickleAfterMs, trickleMs } = this.#options;
    if (now - this.#since < (this.#stream ? trickleMs : trickleAfterMs)) return;
    this.#since = now;
    if (this.#stream) this.#stream.write('\n');
    else this.#beDue();
  }
}
