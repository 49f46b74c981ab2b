import type { AnyRoute, Reply, RequestContext } from '../../http/index.ts';
import { json, jsonBytes } from '../../http/index.ts';
import { type AppServerRecord, EnsureRequest, RestartRequest, StopRequest } from '../../protocol/index.ts';
import type { HubCaller } from '../auth.ts';
import { hubError } from '../errors.ts';
import type { Registry } from '../registry.ts';
import { hubRoutes } from '../route-table.ts';
import type { Workspace } from '../workspace.ts';
import type { Bind } from './bind.ts';

function answer(result: Workspace | AppServerRecord, requested: string): Reply {
  return 'recordBytes' in result ? jsonBytes(200, result.recordBytes(requested)) : json(200, result);
}

/** A sidecar is any program of the user: only the holder of the Hub token starts one. @throws HttpError 403 `scopeMissing` */
function refuseProgramOfOthers(caller: HubCaller, apiProxy: unknown): void {
  if (caller === 'owner' || apiProxy === undefined || apiProxy === null) return;
  throw hubError('scopeMissing', 'Only the token of the Hub may request an apiProxy.', {
    scope: 'apiProxy',
  });
}

/** Requires the Hub token for a choice of place, because the place decides on the sandbox. @throws HttpError 403 `scopeMissing` */
function refusePlaceOfOthers(caller: HubCaller, place: unknown): void {
  if (caller === 'owner' || place === undefined) return;
  throw hubError('scopeMissing', 'The page token has no right to choose a place. Use the token of the Hub.', {
    scope: 'place',
  });
}

/** Routes of workspace agent servers (specification §4.2). Once `isStopping`, nothing new is started. */
export function appServerRoutes(bind: Bind, registry: Registry, isStopping: () => boolean): AnyRoute[] {
  function refuseWhenStopping(): void {
    if (isStopping()) throw hubError('hubStopping', 'The Hub is shutting down.');
  }

  async function ensure(context: RequestContext<never>): Promise<Reply> {
    const { workspacePath, startIfMissing: starts, apiProxy, place } = await context.json(EnsureRequest);
    refuseProgramOfOthers(context.principal, apiProxy);
    refusePlaceOfOthers(context.principal, place);
    if (starts) refuseWhenStopping();
    // A disconnect does not cancel the start: other callers may wait for it.
    const result = await registry.ensure({ workspacePath, startIfMissing: starts, apiProxy, place });
    return answer(result, String(workspacePath));
  }

  async function restart(context: RequestContext<never>): Promise<Reply> {
    const { workspacePath, apiProxy, place } = await context.json(RestartRequest);
    refuseProgramOfOthers(context.principal, apiProxy);
    refusePlaceOfOthers(context.principal, place);
    refuseWhenStopping();
    return json(200, await registry.restart(workspacePath, apiProxy, place));
  }

  return [
    bind(hubRoutes.ensureAppServer, ensure),
    bind(hubRoutes.listPlaces, async () => json(200, await registry.places())),
    bind(hubRoutes.listAppServers, async () => json(200, await registry.listAll())),
    bind(hubRoutes.getAppServer, async ({ query }) =>
      json(200, await registry.inspect(query.get('path') ?? undefined)),
    ),
    bind(hubRoutes.stopAppServer, async (context) => {
      const { workspacePath, endTurns } = await context.json(StopRequest);
      return json(200, await registry.stop(workspacePath, endTurns));
    }),
    bind(hubRoutes.restartAppServer, restart),
  ];
}
