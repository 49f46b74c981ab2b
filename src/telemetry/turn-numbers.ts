import { extraToolNames, toolNames } from '../config/index.ts';
import { approvalDecisions, type TraceEvent, toolOutcomes, traceTypes } from '../protocol/index.ts';
import type { Family } from './metric.ts';
import { Counter, Histogram } from './numbers.ts';
import { agentMetrics } from './table.ts';
import { type ModelCall, type OpenTurn, type TurnListener, tokensOf } from './turn-follower.ts';

const turnStatuses = ['completed', 'failed', 'cancelled', 'crashed'] as const;
const resumeReasons = ['crash', 'restart', 'stop', 'upgrade'] as const;
const modelOutcomes = ['completed', 'failed', 'cancelled'] as const;
const deciders = ['user', 'policy', 'timeout'] as const;
const directions = ['input', 'output'] as const;
const second = 1_000;

/** Counters of turns since the process started: counted from their traces, some additions for each event. */
export class TurnNumbers implements TurnListener {
  readonly #turns = new Counter(
    agentMetrics.turns,
    turnStatuses.map((status) => ({ status })),
  );
  readonly #turnsResumed = new Counter(
    agentMetrics.turnsResumed,
    resumeReasons.map((reason) => ({ reason })),
  );
  readonly #turnDuration = new Histogram(agentMetrics.turnDuration, [{}]);
  readonly #modelCalls = new Counter(
    agentMetrics.modelCalls,
    modelOutcomes.map((outcome) => ({ outcome })),
  );
  readonly #modelCallDuration = new Histogram(agentMetrics.modelCallDuration, [{}]);
  readonly #firstSegment = new Histogram(agentMetrics.firstSegment, [{}]);
  readonly #tokens = new Counter(
    agentMetrics.tokens,
    directions.map((direction) => ({ direction })),
  );
  readonly #cachedInputTokens = new Counter(agentMetrics.cachedInputTokens, [{}]);
  readonly #reasoningTokens = new Counter(agentMetrics.reasoningTokens, [{}]);
  readonly #cost = new Counter(agentMetrics.cost, [{}]);
  readonly #modelRetries = new Counter(agentMetrics.modelRetries, [{}]);
  readonly #toolCalls = new Counter(agentMetrics.toolCalls);
  readonly #toolDuration = new Histogram(agentMetrics.toolDuration);
  readonly #approvals = new Counter(agentMetrics.approvals);
  readonly #approvalWait = new Histogram(agentMetrics.approvalWait, [{}]);
  readonly #traceEvents = new Counter(
    agentMetrics.traceEvents,
    traceTypes.map((type) => ({ type })),
  );

  onEvent(event: TraceEvent): void {
    this.#traceEvents.add({ type: event.type });
    switch (event.type) {
      case 'turn.resumed':
        this.#turnsResumed.add({ reason: knownOr(resumeReasons, event.data['reason']) });
        return;
      case 'tokens.used':
        this.#tokens.add({ direction: 'input' }, tokensOf(event.data['inputTokens']));
        this.#tokens.add({ direction: 'output' }, tokensOf(event.data['outputTokens']));
        return;
      case 'tool.completed':
      case 'tool.failed':
        this.#countTool(event);
        return;
      case 'approval.completed':
        this.#countApproval(event);
    }
  }

  onModelCall({ startedAt, endedAt, firstAt, outcome, tokens, costUsd = 0, retries }: ModelCall): void {
    this.#cachedInputTokens.add({}, tokens?.cached ?? 0);
    this.#reasoningTokens.add({}, tokens?.reasoning ?? 0);
    this.#cost.add({}, costUsd);
    if (retries > 0 && outcome === 'completed') this.#modelRetries.add({});
    this.#modelCalls.add({ outcome });
    this.#modelCallDuration.observe({}, (endedAt - startedAt) / second);
    if (firstAt !== undefined) this.#firstSegment.observe({}, (firstAt - startedAt) / second);
  }

  onTurnEnd({ data, durationMs }: TraceEvent): void {
    // The duration is unknown.
    const hasCrashed = data['interruptedBy'] === 'crash';
    const status = hasCrashed ? 'crashed' : knownOr(turnStatuses, data['status']);
    this.#turns.add({ status });
    if (!hasCrashed && durationMs !== undefined) this.#turnDuration.observe({}, durationMs / second);
  }

  onTurnLost(_turn: OpenTurn): void {
    // The end was dropped with other events, which are counted where they are dropped.
  }

  families(): Family[] {
    return [
      this.#turns,
      this.#turnsResumed,
      this.#turnDuration,
      this.#modelCalls,
      this.#modelCallDuration,
      this.#firstSegment,
      this.#tokens,
      this.#cachedInputTokens,
      this.#reasoningTokens,
      this.#cost,
      this.#modelRetries,
      this.#toolCalls,
      this.#toolDuration,
      this.#approvals,
      this.#approvalWait,
      this.#traceEvents,
    ].map((numbers) => numbers.family());
  }

  #countTool({ tool: name, durationMs, data }: TraceEvent): void {
    const tool = toolLabel(name);
    this.#toolCalls.add({ tool, outcome: knownOr(toolOutcomes, data['outcome']) });
    if (durationMs !== undefined) this.#toolDuration.observe({ tool }, durationMs / second);
  }

  #countApproval({ durationMs, data }: TraceEvent): void {
    const decidedBy = knownOr(deciders, data['decidedBy']);
    this.#approvals.add({ decision: knownOr(approvalDecisions, data['decision']), decided_by: decidedBy });
    // A decision of a policy takes no time.
    if (decidedBy !== 'policy' && durationMs !== undefined) this.#approvalWait.observe({}, durationMs / second);
  }
}

const names = [...toolNames, ...extraToolNames];
const builtin: ReadonlySet<string> = new Set(names);

/** Label values of tools, all that there are. */
export const toolLabels: readonly string[] = [...names, 'mcp', 'other'];

/** A model calls tools that do not exist, and clients bring their own: only names that we chose become a label. */
export function toolLabel(tool: string | undefined): string {
  if (tool === undefined) return 'other';
  if (builtin.has(tool)) return tool;
  return tool.startsWith('mcp__') ? 'mcp' : 'other';
}

/** `value` when it is one of `known`, else `other`. */
export function knownOr<T extends string>(known: readonly T[], value: unknown): T | 'other' {
  return known.find((each) => each === value) ?? 'other';
}
