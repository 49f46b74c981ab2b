import { json } from '../../http/index.ts';
import { changeSettings, configuredRepositories, diagnosticsOf, SettingsChangeError } from '../settings/index.ts';
import { apiError } from './errors.ts';
import { limits } from './limits.ts';
import { parseQuery } from './query.ts';
import { Readiness } from './readiness.ts';
import { reviewRoutes } from './route-table.ts';
import type { ApiHandler, Services } from './service.ts';
import { SettingsChangeInput } from './shapes.ts';

/** Handlers for health, status, dead jobs, settings and the OpenAPI document. */
export function systemHandlers({ store, settings, logger, node, version, about, problem }: Services) {
  let document: Promise<unknown> | undefined;
  const readiness = new Readiness(store, problem);
  return {
    async getHealth() {
      const reason = await readiness.problem();
      const status = reason === undefined ? 'ok' : 'unavailable';
      const about = { service: 'oratorio', status, node, time: new Date().toISOString() };
      return json(reason === undefined ? 200 : 503, { ...about, ...(reason !== undefined && { reason }) });
    },

    getLiveness: () => json(200, { service: 'oratorio', status: 'ok', node, time: new Date().toISOString() }),

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
