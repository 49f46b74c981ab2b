import type { HttpServer } from '../http/index.ts';
import { type AppServerRecord, appServerStates, type HubStatus, stateWordOf } from '../protocol/index.ts';
import {
  byLabel,
  expose,
  type Family,
  type HubTelemetry,
  hubMetrics,
  type MetricsText,
  plain,
  processFamilies,
  workspaceId,
} from '../telemetry/index.ts';
import type { HubEvents } from './events.ts';
import type { Inspection } from './inspection.ts';
import type { Registry } from './registry.ts';

export interface MetricsSources {
  readonly registry: Pick<Registry, 'list'>;
  readonly events: Pick<HubEvents, 'counts'>;
  readonly inspection: Pick<Inspection, 'viewers'>;
  readonly server: Pick<HttpServer, 'stats'>;
  readonly status: Pick<HubStatus, 'hubVersion'>;
  /** Metrics of the supervision; see `startHubTelemetry`. */
  readonly telemetry?: Pick<HubTelemetry, 'families'> | undefined;
}

/**
 * The Prometheus text of `GET /v1/metrics`. Everything is counted where it happens and only read here, so metrics that are
 * not scraped cost nothing. No label contains a path: a scrape does not reveal the user's projects.
 */
export function renderMetrics({
  registry,
  events,
  inspection,
  server,
  status,
  telemetry,
}: MetricsSources): Promise<MetricsText> {
  const { connections, sseReaders } = server.stats();
  return expose([
    byLabel(hubMetrics.info, 'version', [[status.hubVersion, 1]]),
    ...workspaceFamilies(registry),
    ...(telemetry?.families() ?? []),
    byLabel(hubMetrics.events, 'kind', events.counts()),
    plain(hubMetrics.httpConnections, connections),
    plain(hubMetrics.sseReaders, sseReaders),
    plain(hubMetrics.inspectorActive, Math.min(1, inspection.viewers())),
    ...processFamilies(),
  ]);
}

/** Health and last turn of each workspace, by its id: a path would reveal the user's projects. */
function healthFamilies(records: readonly AppServerRecord[]): Family[] {
  const each = records.map((record) => ({ record, workspace: workspaceId(record.canonicalWorkspacePath) }));
  const known = each.filter(({ record: { health } }) => health !== 'unknown');
  return [
    {
      metric: hubMetrics.workspaceState,
      samples: each.map(({ record, workspace }) => ({ labels: { workspace, state: stateWordOf(record) }, value: 1 })),
    },
    {
      metric: hubMetrics.workspaceHealthy,
      samples: known.map(({ record: { health }, workspace }) => ({
        labels: { workspace },
        value: health === 'healthy' ? 1 : 0,
      })),
    },
    {
      metric: hubMetrics.lastTurnAt,
      samples: each.flatMap(({ record: { lastTurn }, workspace }) =>
        lastTurn === null
          ? []
          : [{ labels: { workspace, status: lastTurn.status }, value: Date.parse(lastTurn.endedAt) / 1000 }],
      ),
    },
    {
      metric: hubMetrics.failuresInARow,
      samples: each.map(({ record, workspace }) => ({ labels: { workspace }, value: record.failuresInARow })),
    },
  ];
}

function workspaceFamilies(registry: Pick<Registry, 'list'>): Family[] {
  const records = registry.list();
  const counts = new Map<string, number>(appServerStates.map((state) => [state, 0]));
  let restarts = 0;
  for (const record of records) {
    counts.set(record.state, (counts.get(record.state) ?? 0) + 1);
    restarts += record.restartCount;
  }
  return [
    byLabel(hubMetrics.workspaces, 'state', counts),
    plain(hubMetrics.restartsInWindow, restarts),
    ...healthFamilies(records),
  ];
}
