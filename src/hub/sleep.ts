/** The sleep of a workspace: its ports stay open, and the first request starts its agent server. */
import { type AgentServerSnapshot, isAsleep, isServing, isWakeable } from '../../machines/index.ts';
import { type ServiceName, serviceNames } from '../protocol/index.ts';
import { type DoorPorts, Doors } from './doors.ts';
import type { HubServices, WorkspaceFacts } from './facts.ts';
import { unfinishedTurns } from './unfinished-turns.ts';

/** Ports of the addresses that clients of the agent server have. */
function portsOf(endpoints: WorkspaceFacts['endpoints']): DoorPorts {
  const own = serviceNames.flatMap((service): [ServiceName, number][] => {
    const url = service === 'apiProxy' ? undefined : endpoints[service];
    return url === undefined ? [] : [[service, Number(new URL(url).port)]];
  });
  return Object.fromEntries(own);
}

/**
 * Follows the state of a workspace: opens its doors when it falls asleep, and closes them when it is up, or will not be.
 *
 * @param wake starts the agent server
 */
export function followSleep(hub: HubServices, facts: WorkspaceFacts, wake: () => void) {
  let wasAsleep = false;

  function fallAsleep(): void {
    const { stored } = facts;
    const path = stored.canonicalWorkspacePath;
    stored.asleep ??= portsOf(facts.endpoints);
    facts.doors?.close();
    facts.doors = new Doors(stored.asleep, wake);
    hub.logger.info('a workspace without work is asleep', { workspacePath: path });
    // A turn that began during the stop continues at once.
    facts.turnsLeft = unfinishedTurns(hub.home, path, hub.logger);
    if (facts.turnsLeft.length > 0) queueMicrotask(wake);
  }

  return (snapshot: AgentServerSnapshot): void => {
    const sleeps = isAsleep(snapshot);
    if (sleeps && !wasAsleep) fallAsleep();
    if (!sleeps) facts.stored.asleep = null;
    if (sleeps !== wasAsleep)
      hub.save().catch((error: unknown) => hub.logger.error('the state file could not be written', { error }));
    wasAsleep = sleeps;
    if (isWakeable(snapshot)) return;
    if (isServing(snapshot)) void facts.doors?.passOn();
    else facts.doors?.refuse(snapshot.context.lastError ?? 'it was stopped.');
  };
}
