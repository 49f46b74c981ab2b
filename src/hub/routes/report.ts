import type { AnyRoute, Authenticate } from '../../http/index.ts';
import { json, type RequestContext } from '../../http/index.ts';
import type { Logger } from '../../log/index.ts';
import { HealthReport } from '../../protocol/index.ts';
import type { Principal } from '../auth.ts';
import { hubError } from '../errors.ts';
import type { Registry } from '../registry.ts';
import { hubRoutes } from '../route-table.ts';
import type { Bind } from './bind.ts';

export interface ReportRouteOptions {
  readonly registry: Registry;
  /** Accepts the Hub token or the scoped token of an agent server. */
  readonly notifierAuth: Authenticate<Principal>;
  /** Resolves when everything known now is on disk. */
  readonly save: () => Promise<void>;
  readonly logger: Logger;
}

/** `POST /v1/appservers/report`: an accepted report is on disk, or in memory where the disk is full. */
export function reportRoute(bind: Bind, { registry, notifierAuth, save, logger }: ReportRouteOptions): AnyRoute {
  async function report(context: RequestContext<Principal>) {
    const { scope } = context.principal;
    const body = await context.json(HealthReport);
    if (scope === null)
      throw hubError('invalidRequest', 'Only an agent server reports, with the token of its workspace.');
    const accepted = registry.workspaces.get(scope)?.takeReport(body) ?? false;
    if (accepted)
      await save().catch((error: unknown) => logger.error('the state file could not be written', { error }));
    return json(200, { accepted });
  }
  return { ...bind(hubRoutes.reportHealth, (context) => report(context)), auth: notifierAuth };
}
