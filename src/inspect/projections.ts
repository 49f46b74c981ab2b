import type {
  AgentServerContext,
  ApiProxyContext,
  HubContext,
  McpServerContext,
  TurnContext,
} from '../../machines/index.ts';
import type { Projection } from './recorder.ts';

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

/** Error texts may quote a URL or a header: what follows `token=`, `key=` or `Bearer` is cut out. */
export function withoutCredentials(text: string | null): string | null {
  if (text === null) return null;
  return text
    .replace(/\b((?:access_|api_?)?(?:token|key)|secret|password)=[^\s&"']+/gi, '$1=…')
    .replace(/\bBearer\s+[^\s"']+/gi, 'Bearer …');
}
