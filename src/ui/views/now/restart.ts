import type { App } from '../../app/app.ts';
import { readRecord, sendAct } from '../../parts/workspace-acts.ts';

/** Restarts the agent server of a workspace of this machine if it is running, because it reads settings only at its start. */
export async function restartIfUp(app: App, path: string): Promise<void> {
  const record = await readRecord(app, null, path);
  if (record?.state !== 'running' && record?.state !== 'unhealthy') return;
  await sendAct(app, 'restart', { host: null, canonicalWorkspacePath: path });
}
