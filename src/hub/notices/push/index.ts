/**
 * Web Push: notices to browsers of the user, also while no page is open. Each subscription is a channel of `Notices`; its push service
 * is an address that a page named, so that only hosts of the public Internet are asked.
 */
import { createECDH, hash } from 'node:crypto';
import { messageOf } from '../../../lib/index.ts';
import type { Logger } from '../../../log/index.ts';
import { maxPushSubscriptions, type PushInfo, type PushSubscribeInput } from '../../../protocol/index.ts';
import type { OwnedFile } from '../../credentials.ts';
import { hubError } from '../../errors.ts';
import type { Notices } from '../notices.ts';
import { loadPushKeys, type PushKeys, pushKeyFile, savePushKeys } from './keys.ts';
import { EndpointError, type PushNetwork, parseEndpoint, publicAddresses, publicInternet } from './network.ts';
import { sendPush } from './send.ts';
import { PushSubscriptions } from './subscriptions.ts';

export type { PushNetwork } from './network.ts';

/** Contact for push services where the user names none; Apple refuses one that is not real. */
const projectSubject = 'https://github.com/oratorio-dev/oratorio';

export interface WebPushOptions {
  /** Directory of the Hub's state. */
  readonly statePath: string;
  readonly notices: Notices;
  /** Contact of the user, or empty. */
  readonly subject: string;
  readonly network?: () => Promise<PushNetwork>;
  readonly logger: Logger;
}

/** Name of a subscription, also in logs and charts: its address is a secret that the browser shares with its service. */
const idOf = (endpoint: string): string => hash('sha256', endpoint, 'base64url').slice(0, 12);

const channelOf = (id: string): string => `push ${id}`;

export class WebPush {
  readonly #options: WebPushOptions;
  readonly #subscriptions: PushSubscriptions;
  readonly #network: () => Promise<PushNetwork>;
  #keys: PushKeys | undefined;

  constructor(options: WebPushOptions) {
    this.#options = options;
    this.#network = options.network ?? publicInternet;
    this.#subscriptions = new PushSubscriptions(options.statePath, idOf, options.logger);
    for (const id of this.#subscriptions.ids) this.#open(id);
  }

  /** Files to save again when they are lost. The key is read here at the latest: subscribed browsers need it for good. */
  ownedFiles(): OwnedFile[] {
    const { statePath, logger } = this.#options;
    try {
      if (this.#subscriptions.size > 0) this.#ownKeys();
    } catch (error) {
      logger.warn('the key for push services cannot be used; notices to browsers fail', { reason: messageOf(error) });
    }
    const keys = { file: pushKeyFile(statePath), save: () => this.#keys && savePushKeys(statePath, this.#keys) };
    return [this.#subscriptions, keys];
  }

  info(): PushInfo {
    return { publicKey: this.#ownKeys().publicKey, subscriptions: this.#subscriptions.size };
  }

  /**
   * Adds a browser, or renews it. Resolves with its id once it is on disk.
   *
   * @throws HttpError 400 `invalidRequest` for an address that is not that of a public push service, for invalid keys, and for
   *   one browser too many
   */
  async subscribe(subscription: PushSubscribeInput): Promise<string> {
    const id = idOf(subscription.endpoint);
    const known = this.#subscriptions.get(id);
    if (known?.keys.auth === subscription.keys.auth && known.keys.p256dh === subscription.keys.p256dh) return id;
    requirePoint(subscription.keys.p256dh);
    await this.#requirePublic(subscription.endpoint);
    if (this.#subscriptions.get(id) === undefined && this.#subscriptions.size >= maxPushSubscriptions)
      throw hubError(
        'invalidRequest',
        `${maxPushSubscriptions} browsers get notices already. Turn notices off in one of them first.`,
      );
    await this.#subscriptions.set(id, subscription);
    this.#open(id);
    this.#options.logger.info('a browser has subscribed to notices', { channel: channelOf(id) });
    return id;
  }

  /** Forgets a browser. False: it was not known. */
  async unsubscribe(endpoint: string): Promise<boolean> {
    const id = idOf(endpoint);
    const removed = await this.#subscriptions.delete(id);
    if (!removed) return false;
    this.#options.notices.close(channelOf(id));
    this.#options.logger.info('a browser has unsubscribed from notices', { channel: channelOf(id) });
    return true;
  }

  /** Resolves when no write is under way. */
  flush(): Promise<void> {
    return this.#subscriptions.flush();
  }

  #ownKeys(): PushKeys {
    this.#keys ??= loadPushKeys(this.#options.statePath, this.#options.logger);
    return this.#keys;
  }

  async #requirePublic(endpoint: string): Promise<void> {
    try {
      await publicAddresses(parseEndpoint(endpoint), await this.#network());
    } catch (error) {
      if (error instanceof EndpointError) throw hubError('invalidRequest', error.message, { field: 'endpoint' });
      throw error;
    }
  }

  #open(id: string): void {
    const { notices, subject, logger } = this.#options;
    notices.open({
      name: channelOf(id),
      deliver: async (notice, signal) => {
        const subscription = this.#subscriptions.get(id);
        if (!subscription) return;
        const sender = { keys: this.#ownKeys(), subject: subject || projectSubject, network: await this.#network() };
        await sendPush(sender, subscription, notice, signal);
      },
      onGone: () => {
        logger.info('a browser no longer takes notices and is forgotten', { channel: channelOf(id) });
        this.#subscriptions.delete(id).catch((error: unknown) => {
          logger.warn('could not forget a browser; its push service will be asked again', {
            channel: channelOf(id),
            reason: messageOf(error),
          });
        });
      },
    });
  }
}

/** @throws HttpError 400 `invalidRequest` */
function requirePoint(p256dh: string): void {
  try {
    const own = createECDH('prime256v1');
    own.generateKeys();
    own.computeSecret(p256dh, 'base64url');
  } catch {
    throw hubError('invalidRequest', 'keys.p256dh must be a point of the curve P-256.', { field: 'keys.p256dh' });
  }
}
