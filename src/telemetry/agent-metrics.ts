import type { Runtime, TraceStore } from '../agent/index.ts';
import { automationStates, mcpStartupStates } from '../protocol/index.ts';
import type { MetricsText } from './exposition.ts';
import { byLabel, type Family, type Metric, plain } from './metric.ts';
import { processFamilies } from './process-metrics.ts';
import { agentMetrics } from './table.ts';

/** Sources of `GET /metrics` of an agent server. An absent source leaves out its metrics. */
export interface AgentMetricsSources {
  readonly version: string;
  /** See `startTelemetry`. */
  readonly telemetry: { families(): readonly Family[] };
  readonly runtime: Pick<Runtime, 'turns'>;
  readonly traces?: Pick<TraceStore, 'totals' | 'dropped'> | undefined;
  /** Servers of the Model Context Protocol, how many are in each state. */
  readonly mcpByState?: Readonly<Partial<Record<string, number>>> | undefined;
  /** Cron jobs and tasks, how many are in each state. */
  readonly automationsByState?: Readonly<Partial<Record<string, number>>> | undefined;
  /** Numbers of each HTTP server of the process. */
  readonly servers?: readonly ServerStats[] | undefined;
}

export interface ServerStats {
  readonly connections: number;
  readonly sseReaders: number;
  readonly webSockets: number;
}

/**
 * The Prometheus text of `GET /metrics`. Everything is counted where it happens and only read here, so that nothing is
 * paid for metrics without scrapes.
 */
export async function renderMetrics(sources: AgentMetricsSources): Promise<MetricsText> {
  return expose(agentFamilies(sources));
}

/** The text that Prometheus reads, of these families. */
export async function expose(families: readonly Family[]): Promise<MetricsText> {
  const exposition = await import('./exposition.ts');
  return exposition.expose(families);
}

function agentFamilies(sources: AgentMetricsSources): Family[] {
  const { version, telemetry, runtime, traces, mcpByState, automationsByState, servers } = sources;
  return [
    byLabel(agentMetrics.info, 'version', [[version, 1]]),
    plain(agentMetrics.activeTurns, runtime.turns.count),
    plain(agentMetrics.pendingApprovals, runtime.turns.approvals().length),
    ...telemetry.families(),
    ...(traces ? traceFamilies(traces) : []),
    ...(mcpByState ? [counted(agentMetrics.mcpServers, 'state', mcpStartupStates, mcpByState)] : []),
    ...(automationsByState ? [counted(agentMetrics.automations, 'state', automationStates, automationsByState)] : []),
    ...(servers ? serverFamilies(servers) : []),
    ...processFamilies(),
  ];
}

function traceFamilies(traces: Pick<TraceStore, 'totals' | 'dropped'>): Family[] {
  const { sessionCount, eventCount } = traces.totals();
  return [
    plain(agentMetrics.traceEventsDropped, traces.dropped),
    plain(agentMetrics.tracedSessions, sessionCount),
    plain(agentMetrics.storedTraceEvents, eventCount),
  ];
}

/** Exposes every known value, and no other. */
const counted = <L extends string>(
  metric: Metric<L>,
  label: L,
  known: readonly string[],
  counts: Readonly<Partial<Record<string, number>>>,
): Family =>
  byLabel(
    metric,
    label,
    known.map((value) => [value, counts[value] ?? 0]),
  );

function serverFamilies(servers: readonly ServerStats[]): Family[] {
  const sum = (of: keyof ServerStats) => servers.reduce((total, stats) => total + stats[of], 0);
  return [
    plain(agentMetrics.httpConnections, sum('connections')),
    plain(agentMetrics.sseReaders, sum('sseReaders')),
    plain(agentMetrics.webSockets, sum('webSockets')),
  ];
}
