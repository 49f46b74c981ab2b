import { AppServerClient, AppServerConnectionError, JsonRpcError } from '../../client/index.ts';
import { rpcErrors } from '../../protocol/index.ts';
import { hubError } from '../errors.ts';
import { unavailable } from '../pages/index.ts';
import { awake } from '../wake.ts';
import type { Workspace } from '../workspace.ts';

/**
 * Runs `work` on a connection of its own to the agent server of a workspace, which is started when it sleeps.
 *
 * @param signal ends the wait for the start
 * @param client name of the client that the agent server sees
 * @throws HttpError `workspaceUnavailable` while it does not serve, `notFound` for an unknown thread, `invalidRequest` when it refuses
 */
export async function withServer<T>(
  workspace: Workspace,
  signal: AbortSignal,
  client: string,
  work: (server: AppServerClient) => Promise<T>,
): Promise<T> {
  await awake(workspace, signal);
  const endpoint = workspace.facts.endpoints['appServerWebSocket'];
  if (endpoint === undefined) throw unavailable(workspace);
  const clientInfo = { name: client, version: '1' };
  const server = await AppServerClient.connect(endpoint, { clientInfo }).catch(() => {
    throw unavailable(workspace);
  });
  try {
    return await work(server);
  } catch (error) {
    if (error instanceof AppServerConnectionError) throw unavailable(workspace);
    if (!(error instanceof JsonRpcError)) throw error;
    if (error.code === rpcErrors.threadNotFound.code) throw hubError('notFound', 'There is no such conversation.');
    throw hubError('invalidRequest', error.message);
  } finally {
    server.close();
  }
}
