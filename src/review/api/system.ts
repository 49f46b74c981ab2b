import { json } from '../../http/index.ts';
import { changeSettings, configuredRepositories, diagnosticsOf, SettingsChangeError } from '../settings/index.ts';
import { apiError } from './errors.ts';
import type { ApiHandler, Services } from './handlers.ts';
import { SettingsChangeInput } from './shapes.ts';

/** The backend itself: health, status, settings, its own description. */
export function systemHandlers({ store, settings, logger, node, version }: Services) {
  let document: Promise<unknown> | undefined;
  return {
    getHealth: () => json(200, { service: 'oratorio', status: 'ok', node, time: new Date().toISOString() }),

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
      });
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
