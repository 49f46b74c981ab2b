import { createHash, randomBytes } from 'node:crypto';

/** A tool call of a turn. */
export interface TracedToolCall {
  readonly threadId: string;
  readonly turnId: string;
  readonly callId: string;
}

type Turn = Omit<TracedToolCall, 'callId'>;

/** Trace of a turn. A turn that another process resumes keeps its trace. */
export const traceIdOf = ({ threadId, turnId }: Turn): string => hashed(['trace', threadId, turnId], 16);

/** Span id of a tool call, known before the span begins. */
export const toolSpanIdOf = ({ threadId, turnId, callId }: TracedToolCall): string =>
  hashed(['tool', threadId, turnId, callId], 8);

/** `traceparent` (W3C Trace Context) for requests of a tool call. */
export const traceparentOf = (call: TracedToolCall): string => `00-${traceIdOf(call)}-${toolSpanIdOf(call)}-01`;

const hashed = (parts: readonly string[], bytes: number): string =>
  createHash('sha256')
    .update(JSON.stringify(parts))
    .digest('hex')
    .slice(0, 2 * bytes);

/** Generates span ids: the id set for the next span, or else a random one. */
export class SpanIds {
  #traceId: string | undefined;
  #spanId: string | undefined;

  setNext({ traceId, spanId }: { readonly traceId?: string; readonly spanId?: string }): void {
    this.#traceId = traceId;
    this.#spanId = spanId;
  }

  generateTraceId = (): string => {
    const id = this.#traceId ?? randomBytes(16).toString('hex');
    this.#traceId = undefined;
    return id;
  };

  generateSpanId = (): string => {
    const id = this.#spanId ?? randomBytes(8).toString('hex');
    this.#spanId = undefined;
    return id;
  };
}
