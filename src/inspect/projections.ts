import type {
  AgentServerContext,
  ApiProxyContext,
  AutomationContext,
  HubContext,
  McpServerContext,
  ReviewRunContext,
  SchedulerContext,
  TurnContext,
} from '../../machines/index.ts';
import { type Projection, withoutCredentials } from './facts.ts';

/**
 * What of a machine's context may be seen, per machine: numbers, words of ours, and error texts with credentials taken
 * out. A list of what is allowed, never of what is forbidden: a field that is new stays unseen until it is added here.
 */
export const projections: Readonly<Record<string, (context: never) => Projection>> = {
  hub: (context: HubContext) => ({
    mode: context.mode,
    adopted: context.adopted,
    lastError: withoutCredentials(context.lastError),
  }),
  'agent-server': (context: AgentServerContext) => ({
    pid: context.pid,
    incarnation: context.incarnation,
    ownership: context.ownership,
    serverVersion: context.serverVersion,
    attempt: context.attempt,
    delayMs: context.delayMs,
    failures: context.failures.length,
    probeFailures: context.probeFailures,
    stopReason: context.stopReason,
    exitCode: context.exitCode,
    signal: context.signal,
    proxy: context.proxy,
    lastError: withoutCredentials(context.lastError),
  }),
  'api-proxy': (context: ApiProxyContext) => ({
    pid: context.pid,
    incarnation: context.incarnation,
    attempt: context.attempt,
    delayMs: context.delayMs,
    failures: context.failures.length,
    exitCode: context.exitCode,
    signal: context.signal,
    lastError: withoutCredentials(context.lastError),
  }),
  'mcp-server': (context: McpServerContext) => ({
    name: context.name,
    transport: context.transport,
    pid: context.pid,
    incarnation: context.incarnation,
    attempt: context.attempt,
    delayMs: context.delayMs,
    failures: context.failures.length,
    lastError: withoutCredentials(context.lastError),
  }),
  'review-run': (context: ReviewRunContext) => ({
    resumeAt: context.resumeAt,
    attempt: context.attempt,
    maxAttempts: context.maxAttempts,
    failure: context.failure?.code ?? null,
    lastError: withoutCredentials(context.failure?.message ?? null),
  }),
  scheduler: (context: SchedulerContext) => ({
    recovered: context.recovered,
    ticks: context.ticks,
    lastTickAt: dateOf(context.lastTickAt),
    setBacks: context.setBacks,
    lastError: withoutCredentials(context.lastError),
  }),
  automation: (context: AutomationContext) => ({
    automationId: context.automationId,
    kind: context.kind,
    isEnabled: context.isEnabled,
    scheduledFor: dateOf(context.work?.scheduledFor ?? context.due?.scheduledFor ?? null),
    attempt: context.work?.attempt ?? null,
    trigger: context.work?.trigger ?? null,
    coalesced: context.due?.count ?? context.covers?.count ?? null,
    failures: context.failures,
    delayMs: context.delayMs,
    retryAt: dateOf(context.retryAt),
    threadId: context.threadId,
    turnId: context.turnId,
    stopReason: context.stopReason,
    lastError: withoutCredentials(context.lastError),
  }),
  turn: (context: TurnContext) => ({
    threadId: context.threadId,
    turnId: context.turnId,
    rounds: context.rounds,
    maxRounds: context.maxRounds,
    inputTokens: context.tokens.inputTokens,
    outputTokens: context.tokens.outputTokens,
    pending: context.pending.length,
    clientCalls: context.clientCalls,
    hasCompacted: context.hasCompacted,
    finish: context.finish,
    lastError: withoutCredentials(context.failure && `${context.failure.code}: ${context.failure.message}`),
  }),
};

const dateOf = (at: number | null): Date | null => (at === null ? null : new Date(at));
