import { type AnyRoute, json, type RequestContext, type SseSource, sse } from '../../http/index.ts';
import type { InspectionSource } from '../../inspect/index.ts';
import { type DashboardLink, dashboardPaths, type PageInfo, version } from '../../protocol/index.ts';
import type { HubCaller } from '../auth.ts';
import { hubError } from '../errors.ts';
import type { Registry } from '../registry.ts';
import { hubRoutes } from '../route-table.ts';
import type { Bind } from './bind.ts';

export interface PageRoutesOptions {
  readonly registry: Registry;
  readonly inspection: InspectionSource;
  /** Stream for Stately's tools. */
  readonly stately: () => Promise<SseSource>;
  /** The token of a workspace's dashboard. */
  readonly dashboardToken: (canonicalPath: string) => string;
}

const page: PageInfo = {
  kind: 'hub',
  version,
  views: ['now', 'overview', 'threads', 'inbox', 'actors', 'events', 'logs'],
};

/** Routes that only the page in the browser uses. */
export function pageApiRoutes(bind: Bind, options: PageRoutesOptions, lastEventId: LastEventId): AnyRoute[] {
  return [
    bind(hubRoutes.getPage, () => json(200, page)),
    bind(hubRoutes.getDashboardLink, async ({ query, principal }) =>
      json(200, await dashboardLink(options, query.get('path') ?? undefined, principal), [
        ['cache-control', 'no-store'],
      ]),
    ),
    bind(hubRoutes.streamInspection, async (context) => {
      const format = context.query.get('format');
      if (format !== null && format !== 'stately')
        throw hubError('invalidRequest', 'format must be stately, or absent.');
      if (format !== null) return sse(await options.stately(), lastEventId(context));
      const actor = context.query.get('actor');
      return sse(actor === null ? options.inspection : options.inspection.ofActor(actor), lastEventId(context));
    }),
  ];
}

type LastEventId = (context: RequestContext<never>) => string | undefined;

/**
 * The token goes into the fragment: it is never sent, neither to a server nor in a Referer. A page has the page token, and gets
 * the address on its own origin that this token opens.
 */
async function dashboardLink(
  { registry, dashboardToken }: PageRoutesOptions,
  path: string | undefined,
  caller: HubCaller,
): Promise<DashboardLink> {
  const { endpoints, serviceStatus, state, canonicalWorkspacePath, page } = await registry.inspect(path);
  if (caller === 'page' && page !== null) return { url: page };
  const endpoint = endpoints['dashboard'];
  if (endpoint === undefined || (state !== 'running' && state !== 'unhealthy')) {
    const reason = serviceStatus['dashboard']?.reason ?? null;
    throw hubError('notFound', `The workspace has no dashboard now: ${reason ?? `its agent server is ${state}.`}`, {
      state,
      reason,
    });
  }
  const url = new URL(dashboardPaths.page, endpoint);
  url.hash = `token=${dashboardToken(canonicalWorkspacePath)}`;
  return { url: url.href };
}
