import { defaults, type Item, type NewTraceEvent, type TraceType, type Turn } from '../protocol/index.ts';
import { timestamp } from './clock.ts';
import type { StoredThread, TraceStore } from './thread-store.ts';

const { traceTextChars } = defaults.agent;

/**
 * Writes down what a session does, segment by segment (specification §2.8): one event for a whole stretch of thinking or of
 * answer, when it has ended. Tokens and keys that the process knows are taken out first.
 */
export class Tracer {
  readonly #store: Pick<TraceStore, 'append'>;
  readonly #clean: (text: string) => string;

  /** @param clean takes secrets out of a text */
  constructor(store: Pick<TraceStore, 'append'>, clean: (text: string) => string) {
    this.#store = store;
    this.#clean = clean;
  }

  sessionStarted({ id, createdAt, displayName, identity, parentThreadId }: StoredThread): void {
    const data = { displayName, channelName: identity?.channelName, parentThreadId };
    this.#append('session.started', id, { at: createdAt, data });
  }

  sessionCompleted(sessionKey: string, reason: 'archived' | 'ended'): void {
    this.#append('session.completed', sessionKey, { data: { reason } });
  }

  turnStarted({ threadId, id, startedAt }: Turn): void {
    this.#append('turn.started', threadId, { at: startedAt, turnId: id, data: {} });
  }

  turnEnded({ threadId, id, status, error, finishReason, startedAt, completedAt, interruptedBy }: Turn): void {
    const durationMs = completedAt === undefined ? 0 : Date.parse(completedAt) - Date.parse(startedAt);
    if (error)
      this.#append('error', threadId, { turnId: id, data: { code: error.code, text: this.#text(error.message) } });
    this.#append('turn.completed', threadId, { turnId: id, durationMs, data: { status, finishReason, interruptedBy } });
  }

  tokensUsed(threadId: string, turnId: string, inputTokens: number, outputTokens: number): void {
    this.#append('tokens.used', threadId, { turnId, data: { inputTokens, outputTokens } });
  }

  toolStarted(threadId: string, turnId: string, callId: string, tool: string, args: string): void {
    this.#append('tool.started', threadId, { turnId, callId, tool, data: { arguments: this.#text(args) } });
  }

  approvalRequested(threadId: string, turnId: string, callId: string, data: Readonly<Record<string, string>>): void {
    this.#append('approval.requested', threadId, { turnId, callId, data: this.#cleaned(data) });
  }

  approvalCompleted(threadId: string, turnId: string, callId: string, decision: string, decidedBy: string): void {
    this.#append('approval.completed', threadId, { turnId, callId, data: { decision, decidedBy } });
  }

  contextCompacted(threadId: string, turnId: string | undefined, before: number, after: number): void {
    const data = { tokensBefore: before, tokensAfter: after };
    this.#append('context.compacted', threadId, { ...(turnId !== undefined && { turnId }), data });
  }

  /** What the items of a turn tell by themselves, once they are whole. */
  item(threadId: string, item: Item, durationMs: number): void {
    const about = { turnId: item.turnId, itemId: item.id, durationMs: Math.round(durationMs) };
    if (item.type === 'reasoningContent') this.#append('thinking', threadId, { ...about, data: this.#cleaned(item) });
    else if (item.type === 'agentMessage') this.#append('response', threadId, { ...about, data: this.#cleaned(item) });
    else if (item.type === 'toolResult') {
      this.#append(item.outcome === 'completed' ? 'tool.completed' : 'tool.failed', threadId, {
        ...about,
        callId: item.callId,
        tool: item.tool,
        durationMs: item.durationMs ?? 0,
        data: { outcome: item.outcome, result: this.#text(item.text) },
      });
    }
  }

  #append(
    type: TraceType,
    sessionKey: string,
    event: Omit<NewTraceEvent, 'type' | 'sessionKey' | 'at'> & { at?: string },
  ): void {
    this.#store.append({ at: timestamp(), ...event, type, sessionKey });
  }

  #text(text: string): string {
    // Before it is cut: half a secret would not be known for one.
    const clean = this.#clean(text);
    return clean.length > traceTextChars ? `${clean.slice(0, traceTextChars)}… (${clean.length} characters)` : clean;
  }

  #cleaned(data: { readonly text: string } | Readonly<Record<string, string>>): Record<string, string> {
    if ('text' in data && typeof data.text === 'string') return { text: this.#text(data.text) };
    return Object.fromEntries(Object.entries(data).map(([key, value]) => [key, this.#text(value)]));
  }
}
