import { json } from '../../http/index.ts';
import { changeSettings, configuredRepositories, diagnosticsOf, SettingsChangeError } from '../settings/index.ts';
import { apiError } from './errors.ts';
import { limits } from './limits.ts';
import { parseQuery } from './query.ts';
import { reviewRoutes } from './route-table.ts';
import type { ApiHandler, Services } from './service.ts';
import { SettingsChangeInput } from './shapes.ts';

/** Handlers for health, status, dead jobs, settings and the OpenAPI document. */
export function systemHandlers({ store, settings, logger, node, version, about }: Services) {
  let document: Promise<unknown> | undefined;
  const isReachable = createReadiness(store);
  return {
    async getHealth() {
      const isReady = await isReachable();
      const status = isReady ? 'ok' : 'unavailable';
      return json(isReady ? 200 : 503, { service: 'oratorio', status, node, time: new Date().toISOString() });
    },

    async getStatus() {
      const { current, problem } = settings;
      return json(200, {
        version,
        node,
        storage: store.kind,
        writesEnabled: current.GitHub.WritesEnabled,
        webhookReady: current.GitHub.WebhookSecret !== '',
        settingsWritable: current.Settings.Writable,
        settingsProblem: problem?.message ?? null,
        repositories: configuredRepositories(current).length,
        newestEvent: await store.newestEvent(),
        deadJobs: (await store.deadJobs(limits.maxRowsPerPage)).length,
        ...about?.(),
      });
    },

    async listDeadJobs({ query }) {
      const { limit } = parseQuery(reviewRoutes.listDeadJobs, query);
      const jobs = await store.deadJobs(limit);
      return json(
        200,
        jobs.map(({ jobId, kind, key, attempt, error, diedAt }) => ({
          ...{ jobId, kind, key, attempt, error },
          diedAt: new Date(diedAt).toISOString(),
        })),
      );
    },

    getSettings: () => json(200, diagnosticsOf(settings)),

    async changeSettings(context) {
      const { baseRevision, set } = await context.json(SettingsChangeInput);
      try {
        const request = { baseRevision, set, address: context.remoteAddress };
        return json(200, await changeSettings(settings, request, { store, logger }));
      } catch (error) {
        if (!(error instanceof SettingsChangeError)) throw error;
        throw apiError(error.code, error.message, { issues: error.issues });
      }
    },

    async getOpenApi() {
      document ??= import('./openapi.ts').then(({ reviewOpenApi }) => reviewOpenApi(version));
      return json(200, await document);
    },
  } as const satisfies Record<string, ApiHandler>;
}

/** Checks whether the database responds within `healthMs`; concurrent and frequent checks share one query per `healthCacheMs`. */
function createReadiness(store: Pick<Services['store'], 'now'>): () => Promise<boolean> {
  let latest: Promise<boolean> | undefined;
  let until = 0;
  return () => {
    if (!latest || performance.now() > until) {
      latest = answers(store);
      until = performance.now() + limits.healthCacheMs;
    }
    return latest;
  };
}

function answers(store: Pick<Services['store'], 'now'>): Promise<boolean> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => resolve(false), limits.healthMs);
    store
      .now()
      .then(
        () => resolve(true),
        () => resolve(false),
      )
      .finally(() => clearTimeout(timer));
  });
}
