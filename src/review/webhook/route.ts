import { type AnyRoute, json } from '../../http/index.ts';
import type { WebhookIntake } from './intake.ts';
import { limits } from './limits.ts';

export const webhookPath = '/api/v1/sources/github/webhook';

/** The one route that asks for no token: what comes here is signed. */
export function webhookRoute(intake: WebhookIntake): AnyRoute {
  return {
    method: 'POST',
    path: webhookPath,
    bodyLimit: limits.bodyBytes,
    deadlineMs: limits.deadlineMs,
    async handler(context) {
      const { status, body, retryAfterSeconds } = await intake.take({
        header: (name) => context.header(name),
        // Only asked for when the signature is wrong.
        get remoteAddress() {
          return context.remoteAddress;
        },
        bytes: () => context.bytes(),
      });
      return json(status, body, retryAfterSeconds === undefined ? [] : [['retry-after', String(retryAfterSeconds)]]);
    },
  };
}
