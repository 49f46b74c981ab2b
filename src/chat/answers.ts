import * as v from 'valibot';
import { type Header, HttpError, json, type Reply, type RequestContext, stream } from '../http/index.ts';
import type { ChatTurn } from './chat-turn.ts';
import { chatError } from './errors.ts';
import type { Models } from './models.ts';
import { type ChatOptions, type ChatTiming, timingOf } from './options.ts';
import type { Replays } from './replays.ts';
import { type Frames, StreamReply } from './stream-reply.ts';
import { Ticker } from './ticker.ts';
import type { ChatTurns } from './turns.ts';
import { WholeReply } from './whole-reply.ts';

const eventStream = 'text/event-stream; charset=utf-8';
const streamHeaders: readonly Header[] = [
  ['cache-control', 'no-cache'],
  ['x-accel-buffering', 'no'],
];

/** An event stream. */
export const eventReply = (open: Parameters<typeof stream>[2], headers: readonly Header[] = []): Reply =>
  stream(200, eventStream, open, [...streamHeaders, ...headers]);

/**
 * Reads the body of a request, which must be JSON: a page of another site can send anything else without a preflight (RFC 9110, section
 * 15.5.16; Fetch, section 2.2.2).
 *
 * @throws HttpError 400, 415
 */
export async function readJson(context: RequestContext): Promise<unknown> {
  const type = context.header('content-type')?.split(';', 1)[0]?.trim().toLowerCase();
  if (type !== 'application/json') {
    throw chatError('unsupportedMediaType', 'The content type must be application/json.');
  }
  try {
    return await context.json(v.unknown());
  } catch (error) {
    if (error instanceof HttpError && error.code === 'invalidRequest') throw chatError('invalidJson', error.message);
    throw error;
  }
}

/** Answers requests from turns, streamed or whole. */
export class Answers {
  readonly #turns: ChatTurns;
  readonly #timing: ChatTiming;
  readonly #ticker: Ticker;
  readonly #onCut: (error: HttpError) => void;

  constructor(options: ChatOptions, turns: ChatTurns) {
    this.#turns = turns;
    this.#timing = timingOf(options);
    this.#onCut = ({ code, message }) =>
      options.logger.warn('a turn failed after the head of its answer; the body was cut', { code, message });
    const { heartbeatMs, trickleAfterMs, trickleMs } = this.#timing;
    this.#ticker = new Ticker(Math.min(heartbeatMs, trickleAfterMs, trickleMs));
  }

  async streamed(context: RequestContext, turn: ChatTurn, frames: Frames, headers: readonly Header[]): Promise<Reply> {
    const reply = new StreamReply({ turn, frames, heartbeatMs: this.#timing.heartbeatMs, ticker: this.#ticker });
    this.#follow(context, turn, reply);
    await reply.isDue;
    const error = turn.outcome?.error;
    if (error && !turn.hasSpoken) {
      reply.close();
      throw error;
    }
    return eventReply(reply.open, headers);
  }

  async whole(
    context: RequestContext,
    turn: ChatTurn,
    bodyOf: (turn: ChatTurn) => object,
    headers: readonly Header[],
  ): Promise<Reply> {
    const { trickleAfterMs, trickleMs } = this.#timing;
    const reply = new WholeReply({ turn, bodyOf, trickleAfterMs, trickleMs, ticker: this.#ticker, onCut: this.#onCut });
    this.#follow(context, turn, reply);
    await reply.isDue;
    const { outcome } = turn;
    if (!outcome) return stream(200, 'application/json', reply.open, headers);
    if (outcome.error) throw outcome.error;
    return json(200, bodyOf(turn), headers);
  }

  /** Stops watching when the client disconnects. The turn may continue. */
  #follow(context: RequestContext, turn: ChatTurn, reply: { close(): void }): void {
    this.#turns.keep(turn);
    const { signal } = context;
    if (signal.aborted) reply.close();
    else signal.addEventListener('abort', () => reply.close(), { once: true });
  }
}

/** Parts that all answers of a server share. */
export interface AnswerParts {
  readonly turns: ChatTurns;
  readonly models: Models;
  readonly replays: Replays;
  readonly answers: Answers;
}
