import { type AnyRoute, json } from '../../http/index.ts';
import { DeliveryGate } from './body-gate.ts';
import { ClientAddresses } from './client-address.ts';
import type { WebhookIntake } from './intake.ts';
import { limits } from './limits.ts';

export const webhookPath = '/api/v1/sources/github/webhook';

export interface WebhookRouteOptions {
  readonly intake: WebhookIntake;
  /** Addresses and host names of proxies whose `X-Forwarded-For` is believed, besides loopback. */
  readonly trustedProxies?: () => readonly string[];
}

/** The one route without a token: a delivery is signed. */
export function webhookRoute({ intake, trustedProxies = () => [] }: WebhookRouteOptions): AnyRoute {
  const clients = new ClientAddresses(trustedProxies);
  void clients.resolve();
  return {
    method: 'POST',
    path: webhookPath,
    bodyLimit: limits.bodyBytes,
    bodyGate: new DeliveryGate((request) => clients.of(request)),
    deadlineMs: limits.deadlineMs,
    async handler(context) {
      const { status, body, retryAfterSeconds } = await intake.take({
        header: (name) => context.header(name),
        // Only read when the signature is wrong.
        get remoteAddress() {
          return clients.of(context);
        },
        bytes: () => context.bytes(),
      });
      return json(status, body, retryAfterSeconds === undefined ? [] : [['retry-after', String(retryAfterSeconds)]]);
    },
  };
}
