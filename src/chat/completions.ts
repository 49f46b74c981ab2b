import * as v from 'valibot';
import { type Header, HttpError, json, type Reply, type RequestContext, stream } from '../http/index.ts';
import type { ChatTurn } from './chat-turn.ts';
import { chatError, explained } from './errors.ts';
import type { Models } from './models.ts';
import { type ChatOptions, type ChatTiming, timingOf } from './options.ts';
import { type Plan, planOf, sessionIdOf } from './plan.ts';
import { Replays, repetitionOf } from './replays.ts';
import { type ChatRequest, parseRequest } from './request.ts';
import { StreamReply } from './stream-reply.ts';
import { Ticker } from './ticker.ts';
import type { ChatTurns } from './turns.ts';
import { completionOf, WholeReply } from './whole-reply.ts';

const eventStream = 'text/event-stream; charset=utf-8';
const streamHeaders: readonly Header[] = [
  ['cache-control', 'no-cache'],
  ['x-accel-buffering', 'no'],
];

/** Only JSON: a page of another site can send anything else without being asked (RFC 9110, section 15.5.16; Fetch, section 2.2.2). */
function requireJson(context: RequestContext): void {
  const type = context.header('content-type')?.split(';', 1)[0]?.trim().toLowerCase();
  if (type === 'application/json') return;
  throw chatError('unsupportedMediaType', 'The content type must be application/json.');
}

async function readBody(context: RequestContext): Promise<ChatRequest> {
  try {
    return parseRequest(await context.json(v.unknown()));
  } catch (error) {
    if (error instanceof HttpError && error.code === 'invalidRequest') throw chatError('invalidJson', error.message);
    throw error;
  }
}

/** `POST /v1/chat/completions` (specification §4.1). */
export class Completions {
  readonly #turns: ChatTurns;
  readonly #models: Models;
  readonly #timing: ChatTiming;
  readonly #replays: Replays;
  readonly #ticker: Ticker;
  readonly #sessionFromUser: boolean;
  readonly #onCut: (error: HttpError) => void;

  constructor(options: ChatOptions, turns: ChatTurns, models: Models) {
    this.#turns = turns;
    this.#models = models;
    this.#sessionFromUser = options.api.SessionFromUser;
    this.#timing = timingOf(options);
    const { requests, logger } = options;
    this.#replays = new Replays({ requests, turns, timing: this.#timing, logger });
    this.#onCut = ({ code, message }) =>
      options.logger.warn('a turn failed after the head of its answer; the body was cut', { code, message });
    const { heartbeatMs, trickleAfterMs, trickleMs } = this.#timing;
    this.#ticker = new Ticker(Math.min(heartbeatMs, trickleAfterMs, trickleMs));
  }

  readonly handle = async (context: RequestContext): Promise<Reply> => {
    requireJson(context);
    const request = await readBody(context);
    const source = { header: context.header('x-session-id'), fromUser: this.#sessionFromUser };
    const sessionId = sessionIdOf(request, source);
    const repetition = repetitionOf((name) => context.header(name), await context.bytes(), sessionId);
    const known = this.#replays.find(repetition);
    const plan = planOf(request, source);
    const turn = known ?? (await this.#begin(plan, repetition));
    return plan.isStream ? this.#streamed(context, turn, plan) : this.#whole(context, turn);
  };

  async #begin(plan: Plan, repetition: ReturnType<typeof repetitionOf>): Promise<ChatTurn> {
    const models = await this.#models.choose(plan.model).catch((error: unknown) => {
      throw explained(error);
    });
    // Another request may have begun the same turn while the provider listed its models.
    const known = this.#replays.find(repetition);
    if (known) return known;
    return this.#turns.begin(plan, models, {
      isNamed: repetition.hasKey,
      onMade: (turn) => this.#replays.add(repetition, turn),
    });
  }

  async #streamed(context: RequestContext, turn: ChatTurn, { includesUsage }: Plan): Promise<Reply> {
    const { heartbeatMs } = this.#timing;
    const reply = new StreamReply({ turn, includesUsage, heartbeatMs, ticker: this.#ticker });
    this.#follow(context, turn, reply);
    await reply.isDue;
    const error = turn.outcome?.error;
    if (error && !turn.hasSpoken) {
      reply.close();
      throw error;
    }
    return stream(200, eventStream, reply.open, [...streamHeaders, ...sessionHeader(turn)]);
  }

  async #whole(context: RequestContext, turn: ChatTurn): Promise<Reply> {
    const { trickleAfterMs, trickleMs } = this.#timing;
    const reply = new WholeReply({ turn, trickleAfterMs, trickleMs, ticker: this.#ticker, onCut: this.#onCut });
    this.#follow(context, turn, reply);
    await reply.isDue;
    const { outcome } = turn;
    if (!outcome) return stream(200, 'application/json', reply.open, sessionHeader(turn));
    if (outcome.error) throw outcome.error;
    return json(200, completionOf(turn), sessionHeader(turn));
  }

  /** Stops watching when the client disconnects. Another part decides about the turn. */
  #follow(context: RequestContext, turn: ChatTurn, reply: { close(): void }): void {
    this.#turns.keep(turn);
    const { signal } = context;
    if (signal.aborted) reply.close();
    else signal.addEventListener('abort', () => reply.close(), { once: true });
  }
}

const sessionHeader = ({ sessionId }: ChatTurn): Header[] =>
  sessionId === undefined ? [] : [['x-session-id', sessionId]];
