import type { ActorRefFrom } from 'xstate';
import type { AgentServerEmitted, agentServerMachine } from '../../machines/index.ts';
import type { HealthReport, HubEventData } from '../protocol/index.ts';
import { recordExit } from './exits.ts';
import type { HubServices, WorkspaceFacts } from './facts.ts';
import { recentStderr, sidecarStderr } from './record.ts';
import type { StoredWorkspace } from './store.ts';

type Emitted<T extends AgentServerEmitted['type']> = Extract<AgentServerEmitted, { type: T }>;

function exitData(event: Emitted<'appserver.exited'>, facts: WorkspaceFacts): HubEventData<'appserver.exited'> {
  const { pid, exitCode, signal, error, stopReason } = event;
  const { nextAttemptAt } = facts;
  if (stopReason === null) {
    return { pid, exitCode, signal, error, recentStderr: recentStderr(facts), nextAttemptAt };
  }
  return {
    pid,
    exitCode,
    signal,
    stopped: true,
    reason: stopReason,
    ...(stopReason === 'hub' && { hubStopping: true }),
    ...(error !== null && { error }),
  };
}

/** Publishes the events of the machine, with the endpoints and the standard error that never enter a machine. */
export function publishEvents(
  actor: ActorRefFrom<typeof agentServerMachine>,
  hub: HubServices,
  facts: WorkspaceFacts,
): void {
  const path = facts.stored.canonicalWorkspacePath;

  actor.on('port.allocated', ({ service, port }) => hub.publish('port.allocated', path, { service, port }));
  actor.on('appserver.starting', ({ attempt, delayMs }) =>
    hub.publish('appserver.starting', path, {
      endpoints: { ...facts.endpoints },
      ...(delayMs !== null && { attempt, delayMs }),
    }),
  );
  actor.on('appserver.running', ({ pid, ownership, recovered }) => {
    const { turnsResumed = 0 } = facts.stored.report?.incarnation === facts.marker ? facts.stored.report : {};
    hub.publish('appserver.running', path, {
      pid,
      endpoints: { ...facts.endpoints },
      ...(recovered && { recovered }),
      ...(ownership === 'adopted' && { adopted: true }),
      ...(ownership === 'external' && { external: true }),
      ...(turnsResumed > 0 && { turnsResumed }),
    });
  });
  actor.on('appserver.unhealthy', ({ pid, error, consecutiveFailures }) =>
    hub.publish('appserver.unhealthy', path, { pid, error, consecutiveFailures }),
  );
  actor.on('appserver.exited', (event) => {
    facts.turnsLeft = null;
    recordExit(hub, facts, event, actor.getSnapshot().context.ownership !== 'external');
    facts.nextAttemptAt = event.delayMs === null ? null : new Date(Date.now() + event.delayMs).toISOString();
    hub.publish('appserver.exited', path, exitData(event, facts));
    hub.save().catch((error: unknown) => hub.logger.error('the state file could not be written', { error }));
  });
  for (const kind of ['place.lost', 'place.back'] as const) {
    actor.on(kind, () => hub.publish(kind, path, { engine: facts.stored.server?.container?.engine ?? '' }));
  }
  const endpointOf = (sidecar: number) => facts.sidecars.get(sidecar)?.endpoint ?? '';
  actor.on('apiProxy.running', ({ sidecar, pid }) =>
    hub.publish('apiProxy.running', path, { pid, endpoint: endpointOf(sidecar) }),
  );
  actor.on('apiProxy.unhealthy', ({ sidecar, pid, error, consecutiveFailures }) =>
    hub.publish('apiProxy.unhealthy', path, { endpoint: endpointOf(sidecar), pid, error, consecutiveFailures }),
  );
  actor.on('apiProxy.exited', ({ sidecar, pid, exitCode, signal, error, stopped }) =>
    hub.publish('apiProxy.exited', path, {
      endpoint: endpointOf(sidecar),
      pid,
      exitCode,
      signal,
      error,
      recentStderr: sidecarStderr(facts),
      ...(stopped && { stopped }),
    }),
  );
}

/** Publishes a notification with the report on a workspace on which the Hub has given up. Ignores other workspaces. */
export function publishGivingUp(
  hub: Pick<HubServices, 'publish'>,
  { rest, canonicalWorkspacePath: workspacePath }: Pick<StoredWorkspace, 'rest' | 'canonicalWorkspacePath'>,
): void {
  if (rest?.kind !== 'gaveUp') return;
  hub.publish('notification.requested', workspacePath, {
    ...{ workspacePath, kind: 'workspaceDown', title: rest.message, body: rest.note ?? null },
    ...{ severity: 'error', source: 'hub', actionUrl: null },
  });
}

/** Publishes a report whose health, failure, missing MCP servers, pending approvals, agent or sandbox differ from the one before. */
export function publishHealth(
  hub: Pick<HubServices, 'publish'>,
  path: string,
  before: HealthReport | null,
  { health, failure, pendingApprovals, mcpServers, agent, sandbox }: HealthReport,
): void {
  const code = failure?.code ?? null;
  const isSame =
    (before?.health ?? 'unknown') === health &&
    (before?.failure?.code ?? null) === code &&
    (before?.pendingApprovals ?? 0) === pendingApprovals &&
    before?.agent?.state === agent?.state &&
    before?.sandbox?.state === sandbox?.state &&
    missing(before) === missing({ mcpServers });
  if (!isSame) hub.publish('appserver.health', path, { health, code, pendingApprovals, agent: agent?.state ?? null });
}

/** MCP servers that are down, and whether each needs a log-in. */
const missing = (report: Pick<HealthReport, 'mcpServers'> | null): string =>
  (report?.mcpServers.down ?? []).map(({ name, needsLogin = false }) => `${name} ${needsLogin}`).join();
