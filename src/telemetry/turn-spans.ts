import {
  type Attributes,
  type Context,
  ROOT_CONTEXT,
  type Span,
  type SpanContext,
  SpanKind,
  SpanStatusCode,
  type Tracer,
  trace,
} from '@opentelemetry/api';
import { defaults, type TraceEvent } from '../protocol/index.ts';
import {
  argumentsContent,
  chatAttributes,
  chatContent,
  chatName,
  type Described,
  inputContent,
  resultContent,
  short,
  toolAttributes,
  toolSpanName,
  turnAttributes,
  usageAttributes,
} from './gen-ai.ts';
import { type SpanIds, toolSpanIdOf, traceIdOf } from './span-ids.ts';
import { type ModelCall, type OpenTurn, type TurnListener, textOf, tokensOf } from './turn-follower.ts';

export interface TurnSpansOptions {
  readonly tracer: Tracer;
  /** Ids of the spans of the tracer. */
  readonly ids: SpanIds;
  /** Whether spans contain messages, and arguments and results of tools. */
  readonly includeContent: boolean;
  /** Undefined: the provider cannot be had. */
  readonly described: Described | undefined;
}

interface OpenTool {
  readonly span: Span;
  readonly tool: string;
  /** A sub-agent has been found that it started. */
  hasChild: boolean;
}

interface OpenSpans {
  readonly root: Span;
  readonly context: Context;
  readonly tools: Map<string, OpenTool>;
  /** Ids of the spans of tools. */
  readonly usedIds: Set<string>;
  readonly approvals: Map<string, Span>;
  inputTokens: number;
  outputTokens: number;
  errorCode: string | undefined;
}

/** Sub-agents whose first turn has not begun yet. It begins at once; a trace that lost it must not grow. */
const maxChildren = defaults.telemetry.queueSpans;

const ended = (message: string) => ({ code: SpanStatusCode.ERROR, message });

/**
 * Turns as spans: a trace for each turn, in it a span for each request to the model, each tool call and each approval.
 * The turn of a sub-agent is a trace of its own that links to the call which started it.
 */
export class TurnSpans implements TurnListener {
  readonly #options: TurnSpansOptions;
  readonly #open = new Map<string, OpenSpans>();
  /** Spans by turn; those of ended turns stay as long as a late request can name them. */
  readonly #contexts = new WeakMap<OpenTurn, Context>();
  readonly #parents = new Map<string, SpanContext>();

  constructor(options: TurnSpansOptions) {
    this.#options = options;
  }

  onEvent(event: TraceEvent, turn: OpenTurn | undefined): void {
    if (event.type === 'session.started') this.#noteParent(event);
    if (event.type === 'turn.started' && turn) this.#begin(turn, textOf(event.data['text']));
    const open = turn && this.#open.get(turn.sessionKey);
    if (!open) return;
    switch (event.type) {
      case 'tool.started':
        this.#startTool(open, event);
        return;
      case 'tool.completed':
      case 'tool.failed':
        this.#endTool(open, event);
        return;
      case 'approval.requested':
        this.#ask(open, event);
        return;
      case 'approval.completed':
        this.#decide(open, event);
        return;
      case 'context.compacted':
        open.root.addEvent('oratorio.context_compacted', compactionOf(event), new Date(event.at));
        return;
      case 'error':
        open.errorCode = textOf(event.data['code']);
    }
  }

  onModelCall(call: ModelCall, turn: OpenTurn): void {
    const context = this.#contexts.get(turn);
    if (!context) return;
    const open = this.#open.get(turn.sessionKey);
    const { tracer, includeContent, described } = this.#options;
    const provider = call.provider ?? described?.provider;
    // That of another provider is unknown, not ours.
    const model = call.model ?? (call.provider === undefined ? described?.model : undefined);
    if (open?.context === context) {
      open.inputTokens += call.tokens?.input ?? 0;
      open.outputTokens += call.tokens?.output ?? 0;
    }
    const attributes = {
      ...chatAttributes(turn, call, provider, model),
      ...(includeContent && chatContent(call)),
    };
    const startTime = new Date(call.startedAt);
    const span = tracer.startSpan(chatName(model), { kind: SpanKind.CLIENT, startTime, attributes }, context);
    if (call.outcome === 'failed') fail(span, call.errorCode ?? 'failed');
    if (call.outcome === 'cancelled') span.setAttribute('oratorio.cancelled', true);
    if (call.isCompaction) span.setAttribute('oratorio.purpose', 'compaction');
    span.end(new Date(call.endedAt));
  }

  onTurnEnd(event: TraceEvent, turn: OpenTurn | undefined): void {
    const at = Date.parse(event.at);
    const status = textOf(event.data['status']) ?? 'unknown';
    // Left behind by a process that is no more: all that is known is when it began.
    const { sessionKey, turnId = '', durationMs = 0 } = event;
    if (!turn) this.#begin({ sessionKey, turnId, startedAt: at - durationMs });
    const open = this.#open.get(sessionKey);
    if (!open) return;
    const interruptedBy = textOf(event.data['interruptedBy']);
    const finish = textOf(event.data['finishReason']);
    open.root.setAttributes({
      'oratorio.turn.status': status,
      ...(interruptedBy !== undefined && { 'oratorio.turn.interrupted_by': interruptedBy }),
      ...(finish !== undefined && { 'gen_ai.response.finish_reasons': [finish] }),
      ...usageAttributes(open.inputTokens, open.outputTokens),
    });
    if (status === 'failed') fail(open.root, open.errorCode ?? (interruptedBy === 'crash' ? 'crashed' : 'failed'));
    this.#close(sessionKey, open, new Date(at), undefined);
  }

  onTurnLost({ sessionKey }: OpenTurn): void {
    const open = this.#open.get(sessionKey);
    if (open) this.#close(sessionKey, open, new Date(), 'the end of this turn was not heard');
  }

  #noteParent({ sessionKey, data }: TraceEvent): void {
    const parentKey = textOf(data['parentThreadId']);
    const parent = parentKey === undefined ? undefined : this.#open.get(parentKey);
    if (!parent) return;
    // Sub-agents begin in the order in which they were called.
    const call = [...parent.tools.values()].find(({ tool, hasChild }) => tool === 'SpawnSubagent' && !hasChild);
    if (call) call.hasChild = true;
    const [oldest] = this.#parents.keys();
    if (this.#parents.size >= maxChildren && oldest !== undefined) this.#parents.delete(oldest);
    this.#parents.set(sessionKey, (call?.span ?? parent.root).spanContext());
  }

  #begin(turn: OpenTurn, input?: string): void {
    const parent = this.#parents.get(turn.sessionKey);
    this.#parents.delete(turn.sessionKey);
    this.#options.ids.setNext({ traceId: traceIdOf({ threadId: turn.sessionKey, turnId: turn.turnId }) });
    const root = this.#options.tracer.startSpan(
      'turn',
      {
        root: true,
        startTime: new Date(turn.startedAt),
        attributes: {
          ...turnAttributes(turn),
          'oratorio.turn.id': turn.turnId,
          ...(this.#options.includeContent && input !== undefined && inputContent(input)),
        },
        ...(parent && { links: [{ context: parent, attributes: { 'oratorio.link': 'parent_agent' } }] }),
      },
      ROOT_CONTEXT,
    );
    const context = trace.setSpan(ROOT_CONTEXT, root);
    this.#contexts.set(turn, context);
    this.#open.set(turn.sessionKey, {
      root,
      context,
      tools: new Map(),
      usedIds: new Set(),
      approvals: new Map(),
      inputTokens: 0,
      outputTokens: 0,
      errorCode: undefined,
    });
  }

  #startTool(open: OpenSpans, event: TraceEvent): void {
    const { at, sessionKey, turnId = '', callId = '', tool = 'unknown', data } = event;
    const given = textOf(data['arguments']);
    const spanId = toolSpanIdOf({ threadId: sessionKey, turnId, callId });
    // A model may use an id again in one turn.
    if (!open.usedIds.has(spanId)) this.#options.ids.setNext({ spanId });
    open.usedIds.add(spanId);
    const span = this.#child(open, toolSpanName(tool), at, {
      ...toolAttributes(tool, callId),
      ...(this.#options.includeContent && given !== undefined && argumentsContent(given)),
    });
    // A call that a client runs ends in another turn, if ever.
    if (data['source'] === 'client') span.setAttribute('oratorio.tool.source', 'client').end(new Date(at));
    else open.tools.set(callId, { span, tool, hasChild: false });
  }

  #endTool(open: OpenSpans, { at, callId = '', data }: TraceEvent): void {
    const span = open.tools.get(callId)?.span;
    // A call that was cancelled before its start has no duration.
    if (!span) return;
    open.tools.delete(callId);
    const outcome = textOf(data['outcome']) ?? 'unknown';
    const given = textOf(data['result']);
    span.setAttribute('oratorio.tool.outcome', outcome);
    if (this.#options.includeContent && given !== undefined) span.setAttributes(resultContent(given));
    if (outcome === 'failed') fail(span, 'tool_failed');
    span.end(new Date(at));
  }

  #ask(open: OpenSpans, { at, callId = '', data }: TraceEvent): void {
    const [kind, operation, target] = ['kind', 'operation', 'target'].map((name) => textOf(data[name]));
    const span = this.#child(open, 'approval', at, {
      'gen_ai.tool.call.id': callId,
      ...(kind !== undefined && { 'oratorio.approval.kind': kind }),
      ...(operation !== undefined && { 'oratorio.approval.operation': operation }),
      ...(this.#options.includeContent && target !== undefined && { 'oratorio.approval.target': short(target) }),
    });
    open.approvals.set(callId, span);
  }

  #decide(open: OpenSpans, { at, callId = '', data }: TraceEvent): void {
    const span = open.approvals.get(callId);
    if (!span) return;
    open.approvals.delete(callId);
    span.setAttributes({
      'oratorio.approval.decision': textOf(data['decision']) ?? 'unknown',
      'oratorio.approval.decided_by': textOf(data['decidedBy']) ?? 'unknown',
    });
    span.end(new Date(at));
  }

  #child({ context }: OpenSpans, name: string, at: string, attributes: Attributes): Span {
    return this.#options.tracer.startSpan(name, { startTime: new Date(at), attributes }, context);
  }

  /** Open spans end with their turn. @param lost why the turn itself has no end */
  #close(sessionKey: string, open: OpenSpans, at: Date, lost: string | undefined): void {
    this.#open.delete(sessionKey);
    for (const span of [...Array.from(open.tools.values(), (tool) => tool.span), ...open.approvals.values()]) {
      span.setStatus(ended(lost ?? 'the turn has ended before'));
      span.end(at);
    }
    if (lost !== undefined) open.root.setStatus(ended(lost));
    open.root.end(at);
  }
}

function fail(span: Span, type: string): void {
  span.setAttribute('error.type', type);
  span.setStatus({ code: SpanStatusCode.ERROR, message: type });
}

const compactionOf = ({ data }: TraceEvent): Attributes => ({
  'oratorio.tokens_before': tokensOf(data['tokensBefore']),
  'oratorio.tokens_after': tokensOf(data['tokensAfter']),
});
