import { type ActorRefFrom, createActor, fromCallback } from 'xstate';
import { type agentServerMachine, type InboxFeedDriverEvent, inboxFeedMachine } from '../../../machines/index.ts';
import { messageOf } from '../../lib/index.ts';
import type { Logger } from '../../log/index.ts';
import type { FactsOf, WorkspaceFacts } from '../facts.ts';
import { type FeedEvent, readInbox } from './agent-server.ts';
import type { Inbox, InboxWorkspace } from './inbox.ts';

export interface FollowerOptions {
  readonly logger: Logger;
  readonly factsOf: FactsOf;
  readonly inbox: Inbox;
  readonly seed: () => number;
  /** Watches the feed of a workspace before it starts. */
  readonly observe: (feed: ActorRefFrom<typeof inboxFeedMachine>, workspacePath: string) => void;
}

/** Follows the inbox of an agent server, from the moment it serves until it has exited: see `machines/inbox-feed.ts`. */
export type FollowInbox = (actor: ActorRefFrom<typeof agentServerMachine>, workspacePath: string) => void;

/** Made once per Hub, for XState rebuilds every state on `provide`. */
export function inboxFollower(options: FollowerOptions): FollowInbox {
  const { factsOf, inbox, seed, observe, logger } = options;

  async function read(facts: WorkspaceFacts, signal: AbortSignal, report: (event: InboxFeedDriverEvent) => void) {
    const workspace = inboxWorkspaceOf(facts);
    const endpoint = facts.endpoints['appServerWebSocket'];
    try {
      if (endpoint === undefined) throw new Error('the agent server has no WebSocket');
      const status = await readInbox(endpoint, signal, {
        onSign: () => signal.aborted || facts.contact.heard(),
        onEvent(event) {
          if (signal.aborted) return;
          if (event.event === 'health') return facts.contact.reported(event.data);
          take(inbox, workspace, event);
          if (event.event === 'state') report({ type: 'FEED.STATE' });
        },
      });
      if (!signal.aborted) report({ type: status === 404 ? 'FEED.UNSUPPORTED' : 'FEED.BROKEN' });
    } catch (error) {
      if (signal.aborted) return;
      const reason = messageOf(error);
      logger.debug('the inbox of an agent server broke off', { workspacePath: workspace.path, reason });
      report({ type: 'FEED.BROKEN' });
    } finally {
      if (!signal.aborted) facts.contact.ended();
    }
  }

  const machine = inboxFeedMachine.provide({
    actors: {
      feed: fromCallback<{ readonly type: 'NONE' }, { readonly workspacePath: string }>(({ input, sendBack }) => {
        const cut = new AbortController();
        const facts = factsOf(input.workspacePath);
        void read(facts, cut.signal, sendBack);
        return () => {
          cut.abort();
          facts.contact.ended();
        };
      }),
    },
    actions: {
      withdrawRequests: ({ context }) => inbox.withdrawAll(inboxWorkspaceOf(factsOf(context.workspacePath))),
    },
  });

  return (actor, workspacePath) => {
    const feed = createActor(machine, { id: 'inbox-feed', input: { workspacePath, seed: seed() } });
    observe(feed, workspacePath);
    feed.subscribe({ error: (error) => logger.error('the inbox feed failed', { error }) });
    feed.start();
    const release = () => {
      if (feed.getSnapshot().status === 'active') feed.send({ type: 'FEED.RELEASE' });
    };
    actor.on('appserver.running', () => feed.send({ type: 'FEED.SERVED' }));
    actor.on('appserver.exited', () => feed.send({ type: 'FEED.EXITED' }));
    // The Hub ends, or lets the workspace go: its agent server lives on.
    actor.subscribe({ complete: release, error: release });
  };
}

function inboxWorkspaceOf({ id, stored, secrets }: WorkspaceFacts): InboxWorkspace {
  return { id, path: stored.canonicalWorkspacePath, secrets };
}

function take(inbox: Inbox, workspace: InboxWorkspace, { event, data }: Exclude<FeedEvent, { event: 'health' }>): void {
  if (event === 'state') inbox.replace(workspace, data.open, data.resolved);
  else if (event === 'added') inbox.add(workspace, data);
  else inbox.resolve(workspace, data);
}
