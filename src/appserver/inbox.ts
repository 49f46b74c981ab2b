import { isDeepStrictEqual } from 'node:util';
import type * as v from 'valibot';
import { AgentError, isAsked, isResolved, type Runtime, type ThreadEvent } from '../agent/index.ts';
import {
  type AnyRoute,
  type Authenticate,
  HttpError,
  json,
  type RequestContext,
  type SseSource,
  sse,
} from '../http/index.ts';
import { sseFrame } from '../lib/index.ts';
import {
  type ApprovalRequest,
  defaults,
  type FeedHealth,
  type FeedNotification,
  type HealthReport,
  InboxAnswer,
  type InboxDecision,
  type InboxFeedEvent,
  type inboxFeed,
  inboxFeedPath,
  placeOf,
  type ResolvedRequest,
  type RpcNotificationParams,
} from '../protocol/index.ts';

const { healthEventMs, idleHealthEventMs } = defaults.supervise;
/** Decisions that a reader which was away may still learn. */
const maxResolved = 200;

type ApprovalSource = Pick<Runtime, 'feed'> & {
  readonly turns: Pick<Runtime['turns'], 'respond' | 'answer' | 'decisionOf' | 'approvals'>;
};

export interface InboxOptions {
  /** Makes the sign of life that is sent at the beginning and at intervals; absent: no sign. */
  readonly examine?: () => Promise<Omit<FeedHealth, 'nextMs'>>;
  /** Returns the current health; absent: no report is sent. */
  readonly report?: () => HealthReport;
}

interface Reader {
  readonly listener: (batch: Uint8Array) => void;
  readonly onEnd: () => void;
}

/**
 * Feed of this server for the Hub: approvals of all threads, health, and notifications. A reader begins with the whole state, so that
 * the Hub holds no stale approval after its own restart or after a restart of this server.
 */
export class Inbox implements SseSource {
  readonly #runtime: ApprovalSource;
  readonly #readers = new Set<Reader>();
  /** Requests that were announced and whose decision was not. A decision counts some moments before it is announced. */
  readonly #open = new Map<string, ApprovalRequest>();
  readonly #resolved: ResolvedRequest[] = [];
  readonly #leave: () => void;
  readonly #options: InboxOptions;
  #lastReport: HealthReport | undefined;
  #nextBeat: NodeJS.Timeout | undefined;
  #beatMs: number = healthEventMs;
  #isExamining = false;

  constructor(runtime: ApprovalSource, options: InboxOptions = {}) {
    this.#runtime = runtime;
    this.#options = options;
    // Requests of resumed turns are not announced again.
    for (const request of runtime.turns.approvals()) this.#open.set(request.requestId, request);
    this.#leave = runtime.feed.watchApprovals((event) => this.#hear(event));
  }

  /** @throws HttpError 400 `questionInvalid`, 404 `approvalNotFound`, 409 `alreadyDecided` with how */
  decide(requestId: string, answer: v.InferOutput<typeof InboxAnswer>): InboxDecision {
    const { client = 'api', action, content, decision = action ?? 'decline' } = answer;
    const made = this.#decisionOf(requestId);
    if (made) throw alreadyDecided(made);
    const { turns } = this.#runtime;
    try {
      if (action) turns.answer(requestId, { action, content }, client);
      else turns.respond(requestId, decision, 'user', client);
    } catch (error) {
      if (!(error instanceof AgentError)) throw error;
      if (error.reason === 'questionInvalid')
        throw new HttpError(400, error.reason, error.detail ?? error.message, error.data);
      throw new HttpError(404, 'approvalNotFound', 'No such request waits for a decision.', { requestId });
    }
    return { decision, decidedBy: placeOf(client), decidedAt: new Date().toISOString(), reason: 'answered' };
  }

  replay(): readonly Uint8Array[] {
    const state = frame('state', { open: [...this.#open.values()], resolved: [...this.#resolved] });
    this.#lastReport = this.#options.report?.();
    return this.#lastReport ? [state, frame('report', this.#lastReport)] : [state];
  }

  /** Sends the report if it differs from the last one. */
  reportChange(): void {
    if (this.#readers.size === 0) return;
    const report = this.#options.report?.();
    if (!report || isDeepStrictEqual(report, this.#lastReport)) return;
    this.#lastReport = report;
    this.#send('report', report);
  }

  /** Sends a notification to the present readers. */
  notify(notification: FeedNotification): void {
    this.#send('notification', notification);
  }

  subscribe(listener: (batch: Uint8Array) => void, onEnd: () => void): () => void {
    const reader = { listener, onEnd };
    this.#readers.add(reader);
    void this.#beat();
    return () => {
      this.#readers.delete(reader);
      if (this.#readers.size === 0) this.#rest();
    };
  }

  /** Reports health at once where the next report is far away: the server is in use again. */
  hasten(): void {
    if (this.#beatMs > healthEventMs) void this.#beat();
  }

  close(): void {
    this.#leave();
    for (const { onEnd } of [...this.#readers]) onEnd();
    this.#readers.clear();
    this.#rest();
  }

  #rest(): void {
    clearTimeout(this.#nextBeat);
  }

  /** A server that cannot examine itself stays silent, and is then probed. */
  async #beat(): Promise<void> {
    const { examine } = this.#options;
    if (!examine || this.#isExamining) return;
    this.#isExamining = true;
    this.#beatMs = healthEventMs;
    try {
      const health = await examine();
      if (health.idleMs >= healthEventMs) this.#beatMs = idleHealthEventMs;
      this.#send('health', { ...health, nextMs: this.#beatMs });
    } catch {
      // The answer to the next probe names the reason.
    } finally {
      this.#isExamining = false;
    }
    this.#rest();
    if (this.#readers.size > 0) this.#nextBeat = setTimeout(() => void this.#beat(), this.#beatMs).unref();
  }

  #decisionOf(requestId: string): InboxDecision | undefined {
    const made = this.#runtime.turns.decisionOf(requestId);
    if (!made) return undefined;
    return outcomeOf(made);
  }

  #hear(event: ThreadEvent): void {
    if (isAsked(event)) {
      this.#open.set(event.params.requestId, event.params);
      this.#send('added', event.params);
    }
    if (!isResolved(event)) return;
    const { requestId } = event.params;
    this.#open.delete(requestId);
    const resolved: ResolvedRequest = { requestId, ...outcomeOf(event.params), decidedAt: new Date().toISOString() };
    if (this.#resolved.push(resolved) > maxResolved) this.#resolved.shift();
    this.#send('resolved', resolved);
  }

  #send<E extends InboxFeedEvent>(name: E, data: v.InferOutput<(typeof inboxFeed)[E]>): void {
    if (this.#readers.size === 0) return;
    const bytes = frame(name, data);
    for (const { listener } of [...this.#readers]) listener(bytes);
  }
}

type Made = Pick<RpcNotificationParams<'item/approval/resolved'>, 'decision' | 'decidedBy' | 'client'>;

/** Place and reason of a decision; a turn that ends withdraws its requests. */
function outcomeOf({ decision, decidedBy, client }: Made): InboxDecision {
  if (decidedBy === 'timeout') return { decision, decidedBy, reason: 'expired' };
  if (decidedBy === 'policy' && decision === 'cancel') return { decision, decidedBy: 'agent', reason: 'turnEnded' };
  return { decision, decidedBy: decidedBy === 'user' ? placeOf(client ?? 'api') : decidedBy, reason: 'answered' };
}

function frame<E extends InboxFeedEvent>(event: E, data: v.InferOutput<(typeof inboxFeed)[E]>): Buffer {
  return Buffer.from(sseFrame({ event, data: JSON.stringify(data) }));
}

const alreadyDecided = (made: InboxDecision): HttpError =>
  new HttpError(409, 'alreadyDecided', `It was decided already: ${made.decision}, by ${made.decidedBy}.`, made);

/** The inbox for the Hub, with the token of the WebSocket. */
export function inboxRoutes(inbox: Inbox, auth: Authenticate<unknown>): AnyRoute[] {
  return [
    { method: 'GET', path: inboxFeedPath, auth, deadlineMs: 0, handler: () => sse(inbox, undefined) },
    {
      method: 'POST',
      path: `${inboxFeedPath}/:requestId`,
      auth,
      bodyLimit: 65_536,
      handler: async (context: RequestContext) => {
        const answer = await context.json(InboxAnswer);
        return json(200, inbox.decide(context.params['requestId'] ?? '', answer));
      },
    },
  ];
}
