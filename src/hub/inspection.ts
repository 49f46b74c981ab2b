import type { AnyActorRef } from 'xstate';
import type { Authenticate, SseSource, WebSocketRoute } from '../http/index.ts';
import {
  createInspectionSource,
  createRecorder,
  createStatelySource,
  type InspectionSource,
  projections,
  statelySocket,
} from '../inspect/index.ts';
import type { Logger } from '../log/index.ts';

/** The Hub's actors as a viewer sees them: the Hub on top, every workspace below it (design §3). */
export interface Inspection {
  readonly source: InspectionSource;
  /** Stream for Stately's tools; the machines are loaded for the first tool. */
  readonly stately: () => Promise<SseSource>;
  readonly viewers: () => number;
  observeHub(actor: AnyActorRef): void;
  /** Called before the actor starts. Its end is noticed automatically. */
  observeWorkspace(actor: AnyActorRef, path: string): void;
  /** The connection to the inbox of a workspace's agent server. Called before it starts. */
  observeInboxFeed(actor: AnyActorRef, path: string): void;
  /** One request of that inbox. Called before it starts. */
  observeInboxRequest(actor: AnyActorRef, path: string, requestId: string, title: string): void;
  /** Watches the connection to another machine. Called before the actor starts. */
  observeHost(actor: AnyActorRef, name: string): void;
  /** Watches the move of a conversation. Called before the actor starts. */
  observeMove(actor: AnyActorRef, threadId: string): void;
  /** One way to notify the user. Called before it starts. */
  observeChannel(actor: AnyActorRef, name: string): void;
  /** A WebSocket for Stately's tools. */
  statelySocket(path: string, auth: Authenticate<unknown>): WebSocketRoute;
  end(): void;
}

const hubId = 'hub';

/**
 * Records from the start, with or without a viewer: a user asks for the reason of a workspace's state after the events that
 * explain it.
 */
export function createInspection(logger: Logger): Inspection {
  const onFault = (error: unknown) => logger.error('the inspector has failed; the actors continue', { error });
  const recorder = createRecorder({ projections, onFault });
  let stately: Promise<SseSource> | undefined;
  let channels = 0;
  let hosts = 0;
  return {
    source: createInspectionSource(recorder),
    stately() {
      stately ??= loadMachines().then((machines) => createStatelySource(recorder, machines));
      return stately;
    },
    viewers: () => recorder.viewers,
    observeHub: (actor) => recorder.observe(actor, { id: hubId, parent: null, machine: 'hub', title: 'Hub' }),
    observeWorkspace: (actor, path) =>
      recorder.observe(actor, { id: path, parent: hubId, machine: 'agent-server', title: path }),
    observeInboxFeed: (actor, path) =>
      recorder.observe(actor, { id: `${path}#inbox`, parent: path, machine: 'inbox-feed', title: 'Inbox' }),
    observeInboxRequest: (actor, path, requestId, title) =>
      recorder.observe(actor, {
        ...{ id: `${path}#${requestId}`, parent: `${path}#inbox` },
        ...{ machine: 'inbox-request', title },
      }),
    observeHost: (actor, name) => {
      hosts += 1;
      recorder.observe(actor, { id: `hosts/${hosts}`, parent: hubId, machine: 'host', title: `Host: ${name}` });
    },
    observeMove: (actor, threadId) =>
      recorder.observe(actor, { id: actor.id, parent: hubId, machine: 'move', title: `Move of ${threadId}` }),
    observeChannel: (actor, name) => {
      channels += 1;
      recorder.observe(actor, {
        ...{ id: `notices/${channels}`, parent: hubId, machine: 'notification-channel', title: `Notices: ${name}` },
      });
    },
    statelySocket: (path, auth) =>
      statelySocket({ path, auth, recorder: async () => recorder, machines: loadMachines, onFault }),
    end: () => recorder.close(),
  };
}

/** Every machine by the name of its chart. */
async function loadMachines() {
  const { catalogue } = await import('../../machines/catalogue.ts');
  return catalogue;
}
