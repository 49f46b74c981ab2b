import { type ActorRefFrom, createActor, fromCallback } from 'xstate';
import {
  type agentServerMachine,
  type InboxFeedDriverEvent,
  inboxFeedMachine,
  isAtRest,
} from '../../../machines/index.ts';
import { messageOf } from '../../lib/index.ts';
import type { Logger } from '../../log/index.ts';
import type { FeedNotification, HealthReport } from '../../protocol/index.ts';
import type { FactsOf, WorkspaceFacts } from '../facts.ts';
import { type FeedEvent, readInbox } from './agent-server.ts';
import type { Inbox, InboxWorkspace } from './inbox.ts';

export interface FollowerOptions {
  readonly logger: Logger;
  readonly factsOf: FactsOf;
  readonly inbox: Inbox;
  readonly onReport: (workspacePath: string, report: HealthReport) => void;
  readonly notify: (workspacePath: string, notification: FeedNotification) => void;
  readonly seed: () => number;
  /** Watches the feed of a workspace before it starts. */
  readonly observe: (feed: ActorRefFrom<typeof inboxFeedMachine>, workspacePath: string) => void;
}

/** Follows the inbox of an agent server, from the moment it serves until it has exited: see `machines/inbox-feed.ts`. */
export type FollowInbox = (actor: ActorRefFrom<typeof agentServerMachine>, workspacePath: string) => void;

/** Made once per Hub, for XState rebuilds every state on `provide`. */
export function inboxFollower(options: FollowerOptions): FollowInbox {
  const { factsOf, inbox, onReport, notify, seed, observe, logger } = options;

  function take({ event, data }: FeedEvent, facts: WorkspaceFacts): void {
    const workspace = inboxWorkspaceOf(facts);
    if (event === 'state') inbox.replace(workspace, data.open, data.resolved);
    else if (event === 'added') inbox.add(workspace, data);
    else if (event === 'resolved') inbox.resolve(workspace, data);
    else if (event === 'report') onReport(workspace.path, data);
    else if (event === 'notification') notify(workspace.path, data);
    else facts.contact.reported(data);
  }

  async function read(facts: WorkspaceFacts, signal: AbortSignal, report: (event: InboxFeedDriverEvent) => void) {
    const endpoint = facts.endpoints['appServerWebSocket'];
    try {
      if (endpoint === undefined) throw new Error('the agent server has no WebSocket');
      // The Hub itself listens there, and would wake the workspace.
      if (facts.stored.asleep) throw new Error('the agent server is falling asleep');
      const status = await readInbox(endpoint, signal, {
        onSign: () => signal.aborted || facts.contact.heard(),
        onEvent(event) {
          if (signal.aborted) return;
          take(event, facts);
          if (event.event === 'state') report({ type: 'FEED.STATE' });
        },
      });
      if (!signal.aborted) report({ type: status === 404 ? 'FEED.UNSUPPORTED' : 'FEED.BROKEN' });
    } catch (error) {
      if (signal.aborted) return;
      const reason = messageOf(error);
      logger.debug('the inbox of an agent server broke off', {
        workspacePath: facts.stored.canonicalWorkspacePath,
        reason,
      });
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
      suspendRequests: ({ context }) => inbox.suspendAll(inboxWorkspaceOf(factsOf(context.workspacePath))),
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
    let wasAtRest = true;
    actor.subscribe({
      next(snapshot) {
        const rests = isAtRest(snapshot);
        if (rests && !wasAtRest) feed.send({ type: 'FEED.RESTED' });
        wasAtRest = rests;
      },
      // The Hub ends, or lets the workspace go: its agent server lives on.
      ...{ complete: release, error: release },
    });
  };
}

function inboxWorkspaceOf({ id, stored, secrets }: WorkspaceFacts): InboxWorkspace {
  return { id, path: stored.canonicalWorkspacePath, secrets };
}
