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
import type { HubServices, WorkspaceFacts } from './facts.ts';
import { type ServicePorts, SleepingPorts } from './sleeping-ports.ts';
import { unfinishedTurns } from './unfinished-turns.ts';

/** Ports of the addresses that clients of the agent server have. */
function portsOf(endpoints: WorkspaceFacts['endpoints']): ServicePorts {
  const own = serviceNames.flatMap((service): [ServiceName, number][] => {
    const url = service === 'apiProxy' ? undefined : endpoints[service];
    return url === undefined ? [] : [[service, Number(new URL(url).port)]];
  });
  return Object.fromEntries(own);
}

/**
 * Follows the state of a workspace: listens at its ports before its agent server decides to sleep, and stops when the server runs or
 * will not start. So a request always finds a listener.
 *
 * @param wake starts the agent server
 */
export function followSleep(hub: HubServices, facts: WorkspaceFacts, wake: () => void) {
  const joined = new Set<Socket>();
  let before: 'awake' | 'falling' | 'asleep' = 'awake';

  function listen(): void {
    const { stored } = facts;
    stored.asleep ??= portsOf(facts.endpoints);
    facts.sleepingPorts = new SleepingPorts(stored.asleep, wake, joined);
  }

  function fallAsleep(): void {
    if (before === 'falling') facts.sleepingPorts?.open();
    else listen();
    const path = facts.stored.canonicalWorkspacePath;
    hub.logger.info('a workspace without work is asleep', { workspacePath: path });
    // A turn that began during the stop continues at once.
    facts.turnsLeft = unfinishedTurns(hub.home, path, hub.logger);
    if (facts.turnsLeft.length > 0) queueMicrotask(wake);
  }

  return (snapshot: AgentServerSnapshot): void => {
    const now = isAsleep(snapshot) ? 'asleep' : isFallingAsleep(snapshot) ? 'falling' : 'awake';
    if (now !== before) {
      if (now === 'falling') listen();
      if (now === 'asleep') fallAsleep();
      if (now === 'awake') facts.stored.asleep = null;
      // A start saves its intention itself, and does not wait for two writes.
      if (!isStarting(snapshot))
        hub.save().catch((error: unknown) => hub.logger.error('the state file could not be written', { error }));
    }
    before = now;
    if (isWakeable(snapshot)) return;
    if (isServing(snapshot)) void facts.sleepingPorts?.passOn(facts.endpoints);
    else facts.sleepingPorts?.refuse(snapshot.context.lastError ?? 'it was stopped.');
  };
}
