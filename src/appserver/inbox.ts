import type * as v from 'valibot';
import { AgentError, type ThreadEvent, type ThreadService } from '../agent/index.ts';
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
  InboxAnswer,
  type InboxDecision,
  type InboxFeedEvent,
  type inboxFeed,
  inboxFeedPath,
  placeOf,
  type ResolvedRequest,
  type RpcNotificationParams,
} from '../protocol/index.ts';

/** Decisions that a reader which was away may still learn. */
const maxResolved = 200;

type Threads = Pick<ThreadService, 'respond' | 'decisionOf' | 'feed'>;

interface Reader {
  readonly listener: (batch: Uint8Array) => void;
  readonly onEnd: () => void;
}

/**
 * Approvals of all threads for the Hub: the waiting ones, and each change. A reader begins with the whole state, so that the
 * Hub holds no stale approval after its own restart or after a restart of this server.
 */
export class Inbox implements SseSource {
  readonly #threads: Threads;
  readonly #readers = new Set<Reader>();
  /** Requests that were announced and whose decision was not. A decision counts some moments before it is announced. */
  readonly #open = new Map<string, ApprovalRequest>();
  readonly #resolved: ResolvedRequest[] = [];
  readonly #leave: () => void;
  readonly #examine: (() => Promise<FeedHealth>) | undefined;
  #beating: NodeJS.Timeout | undefined;
  #isExamining = false;

  /** @param examine health of this server, which a reader hears at the beginning and again and again; absent: a reader hears none */
  constructor(threads: Threads, examine?: () => Promise<FeedHealth>) {
    this.#threads = threads;
    this.#examine = examine;
    this.#leave = threads.feed.watchApprovals((event) => this.#hear(event));
  }

  /** @throws HttpError 404 `approvalNotFound`, 409 `alreadyDecided` with how */
  decide(requestId: string, { decision, client = 'api' }: v.InferOutput<typeof InboxAnswer>): InboxDecision {
    const made = this.#decisionOf(requestId);
    if (made) throw alreadyDecided(made);
    try {
      this.#threads.respond(requestId, decision, 'user', client);
    } catch (error) {
      if (!(error instanceof AgentError)) throw error;
      throw new HttpError(404, 'approvalNotFound', 'No such request waits for a decision.', { requestId });
    }
    return { decision, decidedBy: placeOf(client), decidedAt: new Date().toISOString(), reason: 'answered' };
  }

  replay(): readonly Uint8Array[] {
    return [frame('state', { open: [...this.#open.values()], resolved: [...this.#resolved] })];
  }

  subscribe(listener: (batch: Uint8Array) => void, onEnd: () => void): () => void {
    const reader = { listener, onEnd };
    this.#readers.add(reader);
    void this.#beat();
    this.#beating ??= setInterval(() => void this.#beat(), defaults.supervise.healthEventMs).unref();
    return () => {
      this.#readers.delete(reader);
      if (this.#readers.size === 0) this.#rest();
    };
  }

  close(): void {
    this.#leave();
    for (const { onEnd } of [...this.#readers]) onEnd();
    this.#readers.clear();
    this.#rest();
  }

  #rest(): void {
    clearInterval(this.#beating);
    this.#beating = undefined;
  }

  /** A server that cannot examine itself stays silent, and is then probed. */
  async #beat(): Promise<void> {
    if (!this.#examine || this.#isExamining) return;
    this.#isExamining = true;
    try {
      this.#tell('health', await this.#examine());
    } catch {
      // The answer to the next probe names the reason.
    } finally {
      this.#isExamining = false;
    }
  }

  #decisionOf(requestId: string): InboxDecision | undefined {
    const made = this.#threads.decisionOf(requestId);
    if (!made) return undefined;
    return outcomeOf(made);
  }

  #hear(event: ThreadEvent): void {
    if (event.method === 'item/approval/request') {
      this.#open.set(event.params.requestId, event.params);
      this.#tell('added', event.params);
    }
    if (event.method !== 'item/approval/resolved') return;
    const { requestId } = event.params;
    this.#open.delete(requestId);
    const resolved: ResolvedRequest = { requestId, ...outcomeOf(event.params), decidedAt: new Date().toISOString() };
    if (this.#resolved.push(resolved) > maxResolved) this.#resolved.shift();
    this.#tell('resolved', resolved);
  }

  #tell<E extends InboxFeedEvent>(name: E, data: v.InferOutput<(typeof inboxFeed)[E]>): void {
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
      bodyLimit: 4_096,
      handler: async (context: RequestContext) => {
        const answer = await context.json(InboxAnswer);
        return json(200, inbox.decide(context.params['requestId'] ?? '', answer));
      },
    },
  ];
}
