import type { HttpServer } from '../../http/index.ts';
import {
  byLabel,
  expose,
  type Family,
  type MetricsText,
  plain,
  processFamilies,
  reviewMetrics,
} from '../../telemetry/index.ts';
import type { JobWorker } from '../jobs/index.ts';
import type { Backlog, ReviewStore } from '../store/index.ts';

export interface MetricsSources {
  readonly store: Pick<ReviewStore, 'backlog' | 'now'>;
  readonly version: string;
  readonly worker: Pick<JobWorker, 'ended' | 'running'> | undefined;
  readonly activeRuns: () => number;
  readonly apiRequests: () => number;
  /** Number of deliveries answered by this process, by outcome. */
  readonly deliveries: () => ReadonlyMap<string, number>;
  readonly http: Pick<HttpServer, 'stats'>;
  readonly viewers: () => number;
}

/** Renders the text of `GET /api/v1/metrics` from the counters of the parts and the backlog of the database. */
export async function renderMetrics(sources: MetricsSources): Promise<MetricsText> {
  const { store, version, worker, activeRuns, apiRequests, deliveries, http, viewers } = sources;
  const [backlog, now] = await Promise.all([store.backlog(), store.now()]);
  const { connections, sseReaders } = http.stats();
  return expose([
    byLabel(reviewMetrics.info, 'version', [[version, 1]]),
    ...backlogFamilies(backlog, now),
    endedJobs(worker),
    plain(reviewMetrics.jobsRunning, worker?.running() ?? 0),
    plain(reviewMetrics.runsHere, activeRuns()),
    byLabel(reviewMetrics.deliveries, 'outcome', deliveries()),
    plain(reviewMetrics.apiRequests, apiRequests()),
    plain(reviewMetrics.httpConnections, connections),
    plain(reviewMetrics.sseReaders, sseReaders),
    plain(reviewMetrics.inspectorActive, Math.min(1, viewers())),
    ...processFamilies(),
  ]);
}

function backlogFamilies({ jobs, oldestDueAt, deadJobs, runs, writes }: Backlog, now: number): Family[] {
  const each = [...jobs].flatMap(([kind, { waiting, taken }]) => [
    { labels: { kind, state: 'waiting' }, value: waiting },
    { labels: { kind, state: 'taken' }, value: taken },
  ]);
  return [
    { metric: reviewMetrics.jobs, samples: each },
    plain(reviewMetrics.oldestJob, oldestDueAt === null ? 0 : Math.max(0, now - oldestDueAt) / 1_000),
    plain(reviewMetrics.deadJobs, deadJobs),
    byLabel(reviewMetrics.runs, 'phase', Object.entries(runs)),
    byLabel(reviewMetrics.writes, 'status', Object.entries(writes)),
  ];
}

function endedJobs(worker: MetricsSources['worker']): Family {
  const samples = [...(worker?.ended() ?? [])].flatMap(([kind, results]) =>
    [...results].map(([result, value]) => ({ labels: { kind, result }, value })),
  );
  return { metric: reviewMetrics.jobsEnded, samples };
}
