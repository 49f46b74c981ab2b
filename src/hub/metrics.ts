import { Gauge, Registry as MetricsRegistry } from 'prom-client';
import type { HttpServer } from '../http/index.ts';
import { appServerStates, type HubStatus } from '../protocol/index.ts';
import type { HubEvents } from './events.ts';
import type { Inspection } from './inspection.ts';
import type { Registry } from './registry.ts';

export interface MetricsSources {
  readonly registry: Registry;
  readonly events: HubEvents;
  readonly inspection: Inspection;
  readonly server: HttpServer;
  readonly status: HubStatus;
}

/**
 * The Prometheus text of `GET /v1/metrics`. Everything is counted where it happens and only read here, so that nothing is
 * paid for metrics nobody scrapes. No label holds a path: a scrape tells nothing of what somebody works on.
 */
export async function renderMetrics(sources: MetricsSources): Promise<{ contentType: string; text: string }> {
  const metrics = new MetricsRegistry();
  const gauge = (name: string, help: string, labelNames: string[] = []) =>
    new Gauge({ name: `oratorio_hub_${name}`, help, labelNames, registers: [metrics] });

  gauge('info', 'Always 1; the version is in the label.', ['version']).set({ version: sources.status.hubVersion }, 1);
  gauge('start_time_seconds', 'When the Hub started, Unix time.').set(Date.parse(sources.status.startedAt) / 1000);

  const byState = gauge('workspaces', 'Known workspaces by state.', ['state']);
  const restarts = gauge(
    'restarts_in_window',
    'Failures that still count against the restart intensity, all workspaces.',
  );
  const counts = new Map<string, number>(appServerStates.map((state) => [state, 0]));
  let failures = 0;
  for (const record of sources.registry.list()) {
    counts.set(record.state, (counts.get(record.state) ?? 0) + 1);
    failures += record.restartCount;
  }
  for (const [state, count] of counts) byState.set({ state }, count);
  restarts.set(failures);

  const events = gauge('events_total', 'Events published since the start, by kind.', ['kind']);
  for (const [kind, count] of sources.events.counts()) events.set({ kind }, count);

  const { connections, sseReaders } = sources.server.stats();
  gauge('http_connections', 'Open connections.').set(connections);
  gauge('sse_readers', 'Open event streams.').set(sseReaders);
  gauge('inspector_active', 'Whether somebody watches the inspection stream (1) or nobody (0).').set(
    Math.min(1, sources.inspection.viewers()),
  );
  gauge('process_resident_memory_bytes', 'Resident memory of the Hub.').set(process.memoryUsage.rss());
  gauge('process_cpu_seconds_total', 'Processor time of the Hub.').set(
    (process.cpuUsage().user + process.cpuUsage().system) / 1e6,
  );
  return { contentType: metrics.contentType, text: await metrics.metrics() };
}
