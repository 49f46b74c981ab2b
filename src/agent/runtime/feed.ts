import type { ApprovalRequest, RpcNotificationMethod, RpcNotificationParams } from '../../protocol/index.ts';

/**
 * An event of a thread: a notification of the protocol, not yet addressed; or a server request, which any
 * listener may answer with `TurnControl.respond`.
 */
export type ThreadEvent =
  | {
      readonly [N in RpcNotificationMethod]: { readonly method: N; readonly params: RpcNotificationParams<N> };
    }[RpcNotificationMethod]
  | { readonly method: 'item/approval/request'; readonly params: ApprovalRequest };

export type Listener = (event: ThreadEvent) => void;

const requestMethods = {
  'item/approval/request': 'asked',
  'question/asked': 'asked',
  'item/approval/resolved': 'resolved',
  'question/resolved': 'resolved',
} as const;
type RequestMethods = typeof requestMethods;
type EventOf<Kind> = Extract<
  ThreadEvent,
  { method: { [M in keyof RequestMethods]: RequestMethods[M] extends Kind ? M : never }[keyof RequestMethods] }
>;

/** Event for a waiting request; questions have their own event. */
export const askedEvent = ({ question, ...request }: ApprovalRequest): ThreadEvent =>
  question
    ? { method: 'question/asked', params: { ...request, question } }
    : { method: 'item/approval/request', params: request };

/** Whether an approval or a question starts to wait. */
export const isAsked = (event: ThreadEvent): event is EventOf<'asked'> =>
  requestMethods[event.method as keyof RequestMethods] === 'asked';

/** Whether an approval or a question was decided. */
export const isResolved = (event: ThreadEvent): event is EventOf<'resolved'> =>
  requestMethods[event.method as keyof RequestMethods] === 'resolved';

/** Distributes events: new threads to all listeners, events of a thread to its subscribers. Each listener gets an event once. */
export class Feed {
  readonly #listeners = new Set<Listener>();
  readonly #subscribers = new Map<string, Set<Listener>>();
  readonly #approvalListeners = new Set<Listener>();
  readonly #onFault: (error: unknown) => void;

  /** @param onFault called when a listener throws; the others still receive the event */
  constructor(onFault: (error: unknown) => void) {
    this.#onFault = onFault;
  }

  /** Adds a listener of broadcasts. Returns a function that ends these and all its subscriptions. */
  join(listener: Listener): () => void {
    this.#listeners.add(listener);
    return () => {
      this.#listeners.delete(listener);
      for (const threadId of this.#subscribers.keys()) this.unsubscribe(threadId, listener);
    };
  }

  subscribe(threadId: string, listener: Listener): void {
    const listeners = this.#subscribers.get(threadId);
    if (listeners) listeners.add(listener);
    else this.#subscribers.set(threadId, new Set([listener]));
  }

  unsubscribe(threadId: string, listener: Listener): void {
    const listeners = this.#subscribers.get(threadId);
    if (listeners?.delete(listener) && listeners.size === 0) this.#subscribers.delete(threadId);
  }

  broadcast(event: ThreadEvent): void {
    this.#notify(this.#listeners, event);
  }

  /** Adds a listener for approvals and questions of all threads. Returns a function that removes it. */
  watchApprovals(listener: Listener): () => void {
    this.#approvalListeners.add(listener);
    return () => this.#approvalListeners.delete(listener);
  }

  /** Notifies the subscribers of a thread, and `also` if it is not among them. */
  publish(threadId: string, event: ThreadEvent, also?: Listener): void {
    const listeners = this.#subscribers.get(threadId);
    if (listeners) this.#notify(listeners, event);
    if (also && !listeners?.has(also)) this.#notify([also], event);
    if (!isAsked(event) && !isResolved(event)) return;
    // A sub-agent's is published for its parents, too.
    if (event.params.threadId === threadId) this.#notify(this.#approvalListeners, event);
  }

  #notify(listeners: Iterable<Listener>, event: ThreadEvent): void {
    for (const listener of listeners) {
      try {
        listener(event);
      } catch (error) {
        this.#onFault(error);
      }
    }
  }
}
