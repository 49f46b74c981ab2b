import { setTimeout as sleep } from 'node:timers/promises';
import type { ActorRefFrom } from 'xstate';
import type { agentServerMachine } from '../../../machines/index.ts';
import { type Backoff, exponentialBackoffMs, jitters, messageOf } from '../../lib/index.ts';
import type { HubServices, WorkspaceFacts } from '../facts.ts';
import { type FeedEvent, readInbox } from './agent-server.ts';
import type { Inbox, InboxWorkspace } from './inbox.ts';

const reconnection: Backoff = { firstMs: 200, capMs: 5_000, jitter: jitters.halfAround };

/**
 * Keeps the inbox as the agent server of a workspace reports it: from the moment it serves until it has exited. A connection that
 * breaks is made again; what waits stays until the agent server says otherwise, or has ended.
 */
export function followInbox(
  actor: ActorRefFrom<typeof agentServerMachine>,
  hub: HubServices,
  facts: WorkspaceFacts,
  inbox: Inbox,
): void {
  const workspace: InboxWorkspace = { id: facts.id, path: facts.stored.canonicalWorkspacePath };
  let following: AbortController | undefined;

  function begin(): void {
    following?.abort();
    following = new AbortController();
    void follow(following.signal);
  }
  function end(): void {
    following?.abort();
    following = undefined;
  }

  async function follow(signal: AbortSignal): Promise<void> {
    for (let failures = 0; !signal.aborted; failures += 1) {
      const endpoint = facts.endpoints['appServerWebSocket'];
      if (endpoint === undefined) return;
      try {
        const status = await readInbox(endpoint, signal, (event) => {
          failures = 0;
          if (!signal.aborted) take(inbox, workspace, event);
        });
        // An earlier version has no inbox, and never will while it runs.
        if (status === 404) return;
      } catch (error) {
        if (signal.aborted) return;
        hub.logger.debug('the inbox of an agent server broke off', {
          workspacePath: workspace.path,
          reason: messageOf(error),
        });
      }
      const pauseMs = exponentialBackoffMs(failures, reconnection, Math.random());
      await sleep(pauseMs, undefined, { signal, ref: false }).catch(() => undefined);
    }
  }

  actor.on('appserver.running', begin);
  actor.on('appserver.exited', () => {
    end();
    inbox.withdrawAll(workspace);
  });
  // The Hub ends, or lets the workspace go: its agent server lives on.
  actor.subscribe({ complete: end, error: end });
}

function take(inbox: Inbox, workspace: InboxWorkspace, { event, data }: FeedEvent): void {
  if (event === 'state') inbox.replace(workspace, data.open, data.resolved);
  else if (event === 'added') inbox.add(workspace, data);
  else inbox.resolve(workspace, data);
}
