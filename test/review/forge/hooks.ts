import { createHmac, randomUUID } from 'node:crypto';
import type { ForgeApp, ForgeDelivery } from './model.ts';
import type { Json } from './schema.ts';

export interface DeliveryOptions {
  readonly guid?: string;
  readonly redelivery?: boolean;
  readonly headers?: Readonly<Record<string, string>>;
}

/** GitHub gives up after so long. */
const patienceMs = 10_000;

/** Webhooks of the App: signed, sent, and kept as GitHub keeps them. */
export class Hooks {
  readonly deliveries: ForgeDelivery[] = [];
  readonly #app: ForgeApp;
  readonly #now: () => number;
  readonly #running = new Set<Promise<unknown>>();
  /** Id larger than a double holds, like GitHub's. */
  #deliveryId = 9_007_199_254_740_993n;

  constructor(app: ForgeApp, now: () => number) {
    this.#app = app;
    this.#now = now;
  }

  /** Sends an event to a subscribed App, without waiting for the delivery. */
  emit(event: string, payload: () => Json): void {
    const { hook, events } = this.#app;
    const isAlwaysSent = event.startsWith('installation');
    if (hook.url === '' || !(isAlwaysSent || events.includes(event))) return;
    const sent = this.deliver(event, payload()).finally(() => this.#running.delete(sent));
    this.#running.add(sent);
  }

  /** Resolves when everything that was emitted has been answered, or has failed. */
  async settled(): Promise<void> {
    while (this.#running.size > 0) await Promise.all(this.#running);
  }

  /** @returns status; 0: no connection, or no answer in time */
  async deliver(event: string, payload: string | Json, options: DeliveryOptions = {}): Promise<number> {
    const { guid = randomUUID(), redelivery = false, headers = {} } = options;
    const body = typeof payload === 'string' ? payload : JSON.stringify(payload);
    const statusCode = await this.#send(event, body, guid, headers);
    this.#deliveryId += 1n;
    const { action = null } = JSON.parse(body) as { action?: string };
    const id = this.#deliveryId;
    const deliveredAt = this.#now();
    this.deliveries.push({ id, guid, event, action, deliveredAt, redelivery, statusCode, payload: body });
    return statusCode;
  }

  async #send(event: string, body: string, guid: string, more: Readonly<Record<string, string>>): Promise<number> {
    const { url, secret } = this.#app.hook;
    const headers = {
      'content-type': 'application/json',
      'user-agent': 'GitHub-Hookshot/test',
      'x-github-event': event,
      'x-github-delivery': guid,
      'x-github-hook-installation-target-id': String(this.#app.id),
      'x-github-hook-installation-target-type': 'integration',
      'x-hub-signature-256': `sha256=${createHmac('sha256', secret).update(body).digest('hex')}`,
      ...more,
    };
    try {
      const signal = AbortSignal.timeout(patienceMs);
      const response = await fetch(url, { method: 'POST', body, headers, signal });
      await response.arrayBuffer();
      return response.status;
    } catch {
      return 0;
    }
  }
}
