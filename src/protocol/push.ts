/** Web Push: how a browser of the user subscribes to the notices of the Hub (RFC 8030, 8291, 8292). */
import * as v from 'valibot';

const text = (description: string) => v.pipe(v.string(), v.description(description));

/** Browsers that are subscribed at most. */
export const maxPushSubscriptions = 20;

/** Answer of `GET /v1/push`. */
export const PushInfo = v.object({
  publicKey: text('Key with which the Hub signs its notices, for `applicationServerKey`: base64url.'),
  subscriptions: v.pipe(v.number(), v.description('Browsers that are subscribed.')),
});
export type PushInfo = v.InferOutput<typeof PushInfo>;

/** Body of `POST /v1/push/subscribe`: a `PushSubscription` as its `toJSON` writes it. */
export const PushSubscribeInput = v.object({
  endpoint: v.pipe(
    v.string(),
    v.maxLength(2_000),
    v.description('Address at the push service of the browser: https, of a public host.'),
  ),
  keys: v.pipe(
    v.object({
      p256dh: v.pipe(
        v.string(),
        v.regex(/^B[\w-]{86}$/),
        v.description('Public key of the browser: 65 bytes, base64url.'),
      ),
      auth: v.pipe(
        v.string(),
        v.regex(/^[\w-]{22}$/),
        v.description('Secret of the subscription: 16 bytes, base64url.'),
      ),
    }),
    v.description('Keys for which notices are encrypted.'),
  ),
});
export type PushSubscribeInput = v.InferOutput<typeof PushSubscribeInput>;

/** Answer of `POST /v1/push/subscribe`. */
export const PushSubscribed = v.object({ id: text('Name of the subscription, by which it is ended.') });
export type PushSubscribed = v.InferOutput<typeof PushSubscribed>;

/** Body of `POST /v1/push/unsubscribe`. */
export const PushUnsubscribeInput = v.object({ endpoint: text('Address of the subscription that ends.') });
export type PushUnsubscribeInput = v.InferOutput<typeof PushUnsubscribeInput>;

/** Answer of `POST /v1/push/unsubscribe`. */
export const PushUnsubscribed = v.object({
  removed: v.pipe(v.boolean(), v.description('False: there was no such subscription.')),
});
export type PushUnsubscribed = v.InferOutput<typeof PushUnsubscribed>;

/** Text of a notice, once the browser has decrypted it. */
export const PushMessage = v.object({
  id: text('Id of the notice: `<workspaceId>/<requestId>`. A later one of the same id replaces it.'),
  title: text('One line.'),
  body: text('One line.'),
  path: text('Path of the page that shows the request, on the origin of the page that subscribed.'),
});
export type PushMessage = v.InferOutput<typeof PushMessage>;
