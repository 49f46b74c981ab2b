/** The sleep of a workspace: its ports stay open, and the first request starts its agent server. */
import type { Socket } from 'node:net';
import {
  type AgentServerSnapshot,
  isAsleep,
  isFallingAsleep,
  isServing,
  isStarting,
  isWakeable,
} from '../../machines/index.ts';
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
 * Follows the state of a workspace: opens its doors before its agent server decides to sleep, and closes them when the server runs or
 * will not start. So a request always finds a listener.
 *
 * @param wake starts the agent server
 */
export function followSleep(hub: HubServices, facts: WorkspaceFacts, wake: () => void) {
  const joined = new Set<Socket>();
  let before: 'awake' | 'falling' | 'asleep' = 'awake';

  function openDoors(): void {
    const { stored } = facts;
    stored.asleep ??= portsOf(facts.endpoints);
    facts.doors = new Doors(stored.asleep, wake, joined);
  }

  function fallAsleep(): void {
    if (before === 'falling') facts.doors?.open();
    else openDoors();
    const path = facts.stored.canonicalWorkspacePath;
    hub.logger.info('a workspace without work is asleep', { workspacePath: path });
    // A turn that began during the stop continues at once.
    facts.turnsLeft = unfinishedTurns(hub.home, path, hub.logger);
    if (facts.turnsLeft.length > 0) queueMicrotask(wake);
  }

  return (snapshot: AgentServerSnapshot): void => {
    const now = isAsleep(snapshot) ? 'asleep' : isFallingAsleep(snapshot) ? 'falling' : 'awake';
    if (now !== before) {
      if (now === 'falling') openDoors();
      if (now === 'asleep') fallAsleep();
      if (now === 'awake') facts.stored.asleep = null;
      // A start saves its intention itself, and does not wait for two writes.
      if (!isStarting(snapshot))
        hub.save().catch((error: unknown) => hub.logger.error('the state file could not be written', { error }));
    }
    before = now;
    if (isWakeable(snapshot)) return;
    if (isServing(snapshot)) void facts.doors?.passOn(facts.endpoints);
    else facts.doors?.refuse(snapshot.context.lastError ?? 'it was stopped.');
  };
}
