/** Actions on a workspace, in one table for lists, the palette and the header of its actor. */
import type { AppServerRecord, FleetList, FleetRecord } from '../../protocol/index.ts';
import type { App } from '../app/app.ts';

export type Action = 'ensure' | 'restart' | 'stop';

/** Facts that decide which actions a workspace allows. */
export interface ActFacts {
  /** Public state of its agent server. */
  readonly state: string;
  /** The supervisor restarts it after a pause. */
  readonly isRetrying?: boolean;
}

/** Actions that a workspace allows in its state, the most common one first. */
export function actionsOn({ state, isRetrying = false }: ActFacts): readonly Action[] {
  switch (state) {
    case 'stopped':
    case 'asleep':
      return ['ensure'];
    case 'exited':
      return isRetrying ? ['ensure', 'stop'] : ['ensure'];
    case 'starting':
      return ['stop'];
    case 'stopping':
      return ['restart'];
    default:
      return ['restart', 'stop'];
  }
}

/** Labels of each action: for its button, and while it is in progress. */
export const actWords: Readonly<Record<Action, { readonly label: string; readonly busy: string }>> = {
  ensure: { label: 'Start', busy: 'Starting…' },
  restart: { label: 'Restart', busy: 'Restarting…' },
  stop: { label: 'Stop', busy: 'Stopping…' },
};

/** Starts, restarts or stops the agent server of a workspace of this machine or of a host. Rejects with `ApiError`. */
export const sendAct = (
  { hub }: Pick<App, 'hub'>,
  action: Action,
  { host, canonicalWorkspacePath: workspacePath }: Pick<FleetRecord, 'host' | 'canonicalWorkspacePath'>,
): Promise<AppServerRecord> =>
  hub.send('POST', host === null ? `/v1/appservers/${action}` : `/v1/hosts/${host}/${action}`, { workspacePath });

/** Record of a workspace of this machine or of a host. Rejects with `ApiError`. */
export async function readRecord(
  { hub }: Pick<App, 'hub'>,
  host: string | null,
  path: string,
  signal?: AbortSignal,
): Promise<AppServerRecord | undefined> {
  if (host === null) return hub.get(`/v1/appservers/by-workspace?${new URLSearchParams({ path })}`, signal);
  const { appServers } = await hub.get<FleetList>(
    `/v1/fleet/appservers?${new URLSearchParams({ host, path })}`,
    signal,
  );
  return appServers[0];
}
