import { type ActorRefFrom, createActor, fromPromise } from 'xstate';
import { notificationChannelMachine } from '../../../machines/index.ts';
import { messageOf, visible } from '../../lib/index.ts';
import type { Logger } from '../../log/index.ts';
import type { HubEventData } from '../../protocol/index.ts';
import { DeliveryError, type Notice } from './delivery.ts';

type ChannelActor = ActorRefFrom<typeof notificationChannelMachine>;

/** Sends one notice. @throws DeliveryError */
export type Deliver = (notice: Notice, signal: AbortSignal) => Promise<void>;

export interface Channel {
  readonly name: string;
  readonly deliver: Deliver;
  /** Called when its service no longer knows it. */
  readonly onGone?: () => void;
}

export interface NoticesOptions {
  /** Address of the page, without a path; read when a notice is made. */
  readonly pageUrl: () => string;
  readonly seed: () => number;
  /** Watches a channel before it starts. */
  readonly observe: (actor: ChannelActor, name: string) => void;
  readonly logger: Logger;
}

/** Characters of a title or text. */
const maxChars = 120;

/** Notices that are remembered: more than all channels queue. */
const maxNotices = 500;

const cleaned = (text: string): string => visible(text, { multiline: false }).slice(0, maxChars);

/** Notifies the user, by every channel, that a request waits; a notice that was not sent before the decision is withdrawn. */
export class Notices {
  readonly #options: NoticesOptions;
  readonly #notices = new Map<string, Notice>();
  readonly #channels = new Map<string, ChannelActor>();

  constructor(options: NoticesOptions) {
    this.#options = options;
  }

  /** Adds a channel, in place of one of the same name. */
  open({ name, deliver, onGone }: Channel): void {
    const { seed, observe, logger } = this.#options;
    this.close(name);
    const machine = notificationChannelMachine.provide({
      actors: {
        deliver: fromPromise<void, { readonly id: string; readonly name: string }>(async ({ input, signal }) => {
          const notice = this.#notices.get(input.id);
          if (!notice) return;
          await deliver(notice, signal).catch((error: unknown) => {
            const message = error instanceof DeliveryError ? error.message : messageOf(error);
            if (!signal.aborted) logger.warn('could not deliver a notice', { channel: name, reason: message });
            throw error;
          });
        }),
      },
      actions: {
        forgetChannel: () => {
          this.#channels.delete(name);
          onGone?.();
        },
      },
    });
    const actor = createActor(machine, { id: 'notification-channel', input: { name, seed: seed() } });
    observe(actor, name);
    actor.subscribe({ error: (error) => logger.error('a channel of notices failed', { channel: name, error }) });
    this.#channels.set(name, actor);
    actor.start();
  }

  close(name: string): void {
    const actor = this.#channels.get(name);
    this.#channels.delete(name);
    if (actor?.getSnapshot().status === 'active') actor.send({ type: 'CHANNEL.CLOSE' });
  }

  closeAll(): void {
    for (const name of [...this.#channels.keys()]) this.close(name);
  }

  get channels(): readonly string[] {
    return [...this.#channels.keys()];
  }

  added(
    displayName: string,
    { workspaceId, requestId, tool, operation, actionUrl, expiresAt }: HubEventData<'inbox.added'>,
  ): void {
    if (this.#channels.size === 0) return;
    const id = `${workspaceId}/${requestId}`;
    this.#notices.set(id, {
      id,
      title: `${cleaned(displayName)} waits for an answer`,
      body: cleaned(`${tool}: ${operation}`),
      actionUrl: new URL(actionUrl, this.#options.pageUrl()).href,
      inboxPath: `/#/inbox/${workspaceId}/${encodeURIComponent(requestId)}`,
      expiresAt: Date.parse(expiresAt),
    });
    const [oldest] = this.#notices.keys();
    if (this.#notices.size > maxNotices && oldest !== undefined) this.#notices.delete(oldest);
    for (const actor of this.#channels.values()) actor.send({ type: 'NOTICE.ADDED', id });
  }

  resolved({ workspaceId, requestId }: HubEventData<'inbox.resolved'>): void {
    const id = `${workspaceId}/${requestId}`;
    if (!this.#notices.delete(id)) return;
    for (const actor of this.#channels.values()) actor.send({ type: 'NOTICE.WITHDRAWN', id });
  }
}
