/**
 * Prometheus metrics, and the export of spans to OpenTelemetry. The agent server and the Hub start
 * it, and render its numbers at a scrape. Never here: an HTTP route, a name made of a user's text, anything
 * that a turn or an actor would have to wait for. prom-client and the OpenTelemetry SDK are loaded when first needed.
 */
export { type AgentMetricsSources, expose, renderMetrics, type ServerStats } from './agent-metrics.ts';
export type { MetricsText } from './exposition.ts';
export { type HubTelemetry, type HubTelemetryOptions, startHubTelemetry } from './hub-telemetry.ts';
export { byLabel, type Family, type Metric, plain, type Sample } from './metric.ts';
export { processFamilies } from './process-metrics.ts';
export { type TracedToolCall, traceparentOf } from './span-ids.ts';
export { agentMetrics, exportMetrics, hubMetrics, metricTables, processMetrics, reviewMetrics } from './table.ts';
export { startTelemetry, type Telemetry, type TelemetryOptions } from './telemetry.ts';
export { workspaceId } from './workspace-id.ts';
