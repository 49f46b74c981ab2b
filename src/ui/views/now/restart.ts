import type { AppServerRecord } from '../../../protocol/index.ts';
import type { App } from '../../app/app.ts';

/** Restarts the agent server of a workspace if it is running, because it reads settings only at its start. */
export async function restartIfUp({ hub }: App, workspacePath: string): Promise<void> {
  const search = new URLSearchParams({ path: workspacePath });
  const { state } = await hub.get<AppServerRecord>(`/v1/appservers/by-workspace?${search}`);
  if (state === 'running' || state === 'unhealthy') await hub.send('POST', '/v1/appservers/restart', { workspacePath });
}
