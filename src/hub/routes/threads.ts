import { type AnyRoute, json, type Reply, type RequestContext } from '../../http/index.ts';
import type { Logger } from '../../log/index.ts';
import { ThreadChange } from '../../protocol/index.ts';
import type { HubCaller } from '../auth.ts';
import { hubError } from '../errors.ts';
import type { Registry } from '../registry.ts';
import { hubRoutes } from '../route-table.ts';
import type { ThreadLists } from '../threads.ts';
import type { Bind } from './bind.ts';
import { withServer } from './with-server.ts';

export interface ThreadRoutesOptions {
  readonly registry: Registry;
  readonly threadLists: ThreadLists;
  readonly logger: Logger;
}

const clients: Readonly<Record<HubCaller, string>> = { owner: 'api', page: 'oratorio-page', host: 'host' };

const defaultLimit = 100;
const maxLimit = 200;
const maxText = 200;

/** Lists the conversations of all workspaces, and changes one through its agent server. */
export function threadRoutes(bind: Bind, { registry, threadLists, logger }: ThreadRoutesOptions): AnyRoute[] {
  async function list({ query }: RequestContext<never>): Promise<Reply> {
    const text = query.get('q')?.trim() ?? '';
    const limit = Number(query.get('limit') ?? defaultLimit);
    const archived = query.get('archived') ?? 'false';
    if (text.length > maxText) throw hubError('invalidRequest', `q must have at most ${maxText} characters.`);
    if (!Number.isInteger(limit) || limit < 1 || limit > maxLimit)
      throw hubError('invalidRequest', `limit must be a whole number from 1 to ${maxLimit}.`);
    const forks = query.get('forks') ?? 'false';
    for (const [name, value] of Object.entries({ archived, forks }))
      if (value !== 'true' && value !== 'false') throw hubError('invalidRequest', `${name} must be true or false.`);
    const range = { text, limit, includeArchived: archived === 'true', forksOnly: forks === 'true' };
    return json(200, await threadLists.list(range));
  }

  async function change(context: RequestContext<never>): Promise<Reply> {
    const { workspaceId = '', threadId = '' } = context.params;
    const caller: HubCaller = context.principal;
    const { displayName, isArchived } = await context.json(ThreadChange);
    if (displayName === undefined && isArchived === undefined)
      throw hubError('invalidRequest', 'displayName or isArchived must be given.');
    const workspace = registry.byId(workspaceId);
    if (!workspace) throw hubError('notFound', 'There is no such workspace.');
    await withServer(workspace, context.signal, clients[caller], async (server) => {
      if (displayName !== undefined) await server.request('thread/rename', { threadId, displayName });
      if (isArchived !== undefined)
        await server.request(isArchived ? 'thread/archive' : 'thread/unarchive', { threadId });
    });
    logger.info('a conversation was changed', { workspacePath: workspace.path, threadId, isArchived });
    return json(200, { workspaceId, threadId });
  }

  return [bind(hubRoutes.listThreads, list), bind(hubRoutes.changeThread, change)];
}
