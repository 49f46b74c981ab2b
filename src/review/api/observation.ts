import { type AnyRoute, bearer, bytes, json, type SseSource, sse } from '../../http/index.ts';
import { apiError } from './errors.ts';
import { reviewRoutes } from './route-table.ts';
import { bound, type ObservedOperation } from './routes.ts';
import type { ApiHandler } from './service.ts';

export interface ObservationOptions {
  readonly token: () => string;
  readonly inspection: SseSource;
  /** The stream in the format of Stately's tools. */
  readonly stately: SseSource;
  readonly charts: () => Promise<unknown>;
  readonly metrics: () => Promise<{ readonly contentType: string; readonly text: string }>;
}

/** Routes for observing this process, in every role: inspection, machines, metrics. */
export function observationRoutes({ token, inspection, stately, charts, metrics }: ObservationOptions): AnyRoute[] {
  const auth = bearer(token);
  const handlers: Readonly<Record<ObservedOperation, ApiHandler>> = {
    streamInspection(context) {
      const format = context.query.get('format');
      if (format !== null && format !== 'stately')
        throw apiError('invalidRequest', 'Invalid format: use stately, or leave it out.');
      const lastEventId = context.header('last-event-id') ?? context.query.get('lastEventId') ?? undefined;
      return sse(format === null ? inspection : stately, lastEventId);
    },
    listMachines: async () => json(200, await charts()),
    async getMetrics() {
      const { contentType, text } = await metrics();
      return bytes(200, contentType, text);
    },
  };
  return Object.entries(handlers).map(([operation, handler]) =>
    bound(reviewRoutes[operation as ObservedOperation], auth, handler),
  );
}
