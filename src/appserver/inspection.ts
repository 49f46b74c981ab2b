import { type AnyRoute, type Authenticate, HttpError, json, sse, type WebSocketRoute } from '../http/index.ts';
import { loadCharts } from '../inspect/index.ts';
import type { Observatory } from './observatory.ts';

/** The actors of this process for clients with the token of its WebSocket. The dashboard shows them on its own listener. */
export function inspectionRoutes(observatory: Observatory, auth: Authenticate<unknown>): AnyRoute[] {
  return [
    { method: 'GET', path: '/v1/machines', auth, handler: async () => json(200, await loadCharts()) },
    {
      method: 'GET',
      path: '/v1/inspect',
      auth,
      deadlineMs: 0,
      async handler(context) {
        const lastEventId = context.header('last-event-id') ?? context.query.get('lastEventId') ?? undefined;
        const format = context.query.get('format');
        if (format !== null && format !== 'stately') {
          throw new HttpError(400, 'invalidRequest', 'format must be stately, or absent.', null);
        }
        return sse(await (format === null ? observatory.source() : observatory.stately()), lastEventId);
      },
    },
  ];
}

/** Inspection route for Stately's tools, which read a WebSocket. */
export const inspectionSocket = (observatory: Observatory, auth: Authenticate<unknown>): WebSocketRoute =>
  observatory.statelySocket('/v1/inspect/stately', auth);
