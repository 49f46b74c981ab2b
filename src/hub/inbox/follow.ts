import { type ActorRefFrom, createActor, fromCallback } from 'xstate';
import { type agentServerMachine, type InboxFeedDriverEvent, inboxFeedMachine } from '../../../machines/index.ts';
import { messageOf } from '../../lib/index.ts';
import type { HubServices, WorkspaceFacts } from '../facts.ts';
import { type FeedEvent, readInbox } from './agent-server.ts';
import type { Inbox, InboxWorkspace } from './inbox.ts';

export interface FollowOptions {
  readonly hub: Pick<HubServices, 'logger'>;
  readonly facts: WorkspaceFacts;
  readonly inbox: Inbox;
  readonly seed: number;
  /** Watches the feed before it starts. */
  readonly observe: (feed: ActorRefFrom<typeof inboxFeedMachine>) => void;
}

/** Follows the inbox of an agent server, from the moment it serves until it has exited: see `machines/inbox-feed.ts`. */
export function followInbox(actor: ActorRefFrom<typeof agentServerMachine>, options: FollowOptions): void {
  const { facts, inbox, seed, observe, hub } = options;
  const workspace: InboxWorkspace = {
    id: facts.id,
    path: facts.stored.canonicalWorkspacePath,
    secrets: facts.secrets,
  };
  const machine = inboxFeedMachine.provide({
    actors: {
      feed: fromCallback(({ sendBack }: { sendBack: (event: InboxFeedDriverEvent) => void }) => {
        const cut = new AbortController();
        void read(cut.signal, sendBack);
        return () => cut.abort();
      }),
    },
    actions: { withdrawRequests: () => inbox.withdrawAll(workspace) },
  });

  async function read(signal: AbortSignal, report: (event: InboxFeedDriverEvent) => void): Promise<void> {
    const endpoint = facts.endpoints['appServerWebSocket'];
    try {
      if (endpoint === undefined) throw new Error('the agent server has no WebSocket');
      const status = await readInbox(endpoint, signal, (event) => {
        if (signal.aborted) return;
        take(inbox, workspace, event);
        if (event.event === 'state') report({ type: 'FEED.STATE' });
      });
      if (!signal.aborted) report({ type: status === 404 ? 'FEED.UNSUPPORTED' : 'FEED.BROKEN' });
    } catch (error) {
      if (signal.aborted) return;
      const reason = messageOf(error);
      hub.logger.debug('the inbox of an agent server broke off', { workspacePath: workspace.path, reason });
      report({ type: 'FEED.BROKEN' });
    }
  }

  const feed = createActor(machine, { id: 'inbox-feed', input: { seed } });
  observe(feed);
  feed.subscribe({ error: (error) => hub.logger.error('the inbox feed failed', { error }) });
  feed.start();
  const release = () => {
    if (feed.getSnapshot().status === 'active') feed.send({ type: 'FEED.RELEASE' });
  };
  actor.on('appserver.running', () => feed.send({ type: 'FEED.SERVED' }));
  actor.on('appserver.exited', () => feed.send({ type: 'FEED.EXITED' }));
  // The Hub ends, or lets the workspace go: its agent server lives on.
  actor.subscribe({ complete: release, error: release });
}

function take(inbox: Inbox, workspace: InboxWorkspace, { event, data }: FeedEvent): void {
  if (event === 'state') inbox.replace(workspace, data.open, data.resolved);
  else if (event === 'added') inbox.add(workspace, data);
  else inbox.resolve(workspace, data);
}
