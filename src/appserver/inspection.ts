import { type AnyRoute, type Authenticate, json, sse } from '../http/index.ts';
import { loadCharts, pageRoutes } from '../inspect/index.ts';
import type { Logger } from '../log/index.ts';
import type { Observatory } from './observatory.ts';

/** What the page of the Hub asks for, here about the turns and MCP servers of one agent server. */
export function inspectionRoutes(observatory: Observatory, auth: Authenticate<unknown>, logger: Logger): AnyRoute[] {
  return [
    { method: 'GET', path: '/v1/machines', auth, handler: async () => json(200, await loadCharts()) },
    {
      method: 'GET',
      path: '/v1/inspect',
      auth,
      deadlineMs: 0,
      async handler(context) {
        const lastEventId = context.header('last-event-id') ?? context.query.get('lastEventId') ?? undefined;
        return sse(await observatory.source(), lastEventId);
      },
    },
    ...pageRoutes((directory) =>
      logger.warn('the inspector page has not been built; run: npm run build', { directory }),
    ),
  ];
}
