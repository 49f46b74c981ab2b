import type { PushOutcome } from '../../../../../machines/browser.ts';
import { pushWorkerPath } from '../../../../protocol/browser.ts';
import type { PushInfo } from '../../../../protocol/index.ts';
import type { Api } from '../../../app/api.ts';

interface Policies {
  createPolicy(
    name: string,
    rules: { createScriptURL(url: string): string },
  ): { createScriptURL(url: string): unknown };
}

/** The only worker address that the content security policy allows. */
function workerAddress(): string {
  const { trustedTypes } = globalThis as { trustedTypes?: Policies };
  if (!trustedTypes) return pushWorkerPath;
  const policy = trustedTypes.createPolicy('oratorio-worker', {
    createScriptURL(url) {
      if (url !== pushWorkerPath) throw new TypeError('no other worker is registered');
      return url;
    },
  });
  // A TrustedScriptURL, which the types of TypeScript do not know.
  return policy.createScriptURL(pushWorkerPath) as string;
}

/** Base64url of the key for which a browser has subscribed. */
function keyOf({ options: { applicationServerKey } }: PushSubscription): string {
  const bytes = String.fromCharCode(...new Uint8Array(applicationServerKey ?? new ArrayBuffer(0)));
  return btoa(bytes).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '');
}

async function subscriptionOf(): Promise<PushSubscription | null> {
  const registration = await navigator.serviceWorker.getRegistration('/');
  return (await registration?.pushManager.getSubscription()) ?? null;
}

/** Steps of the switch of notices: the browser and the Hub agree about the subscription. Each rejects with the error. */
export function browserPush(api: Api) {
  const give = ({ endpoint, ...subscription }: PushSubscription) =>
    api.send('POST', '/v1/push/subscribe', { endpoint, keys: subscription.toJSON().keys });
  return {
    async check(): Promise<PushOutcome> {
      if (!isSecureContext) return { kind: 'unsupported', obstacle: 'insecureAddress' };
      const hasPush = 'serviceWorker' in navigator && 'PushManager' in globalThis && 'Notification' in globalThis;
      if (!hasPush) return { kind: 'unsupported', obstacle: 'noWebPush' };
      if (Notification.permission === 'denied') return { kind: 'denied' };
      const subscription = Notification.permission === 'granted' ? await subscriptionOf() : null;
      if (!subscription) return { kind: 'off' };
      const { publicKey } = await api.get<PushInfo>('/v1/push');
      if (keyOf(subscription) !== publicKey) {
        // The Hub has lost its key: nothing that it sends would arrive.
        await subscription.unsubscribe();
        return { kind: 'off' };
      }
      await give(subscription);
      return { kind: 'on' };
    },

    async subscribe(): Promise<PushOutcome> {
      const permission = await Notification.requestPermission();
      if (permission !== 'granted') return { kind: permission === 'denied' ? 'denied' : 'off' };
      const { publicKey } = await api.get<PushInfo>('/v1/push');
      await navigator.serviceWorker.register(workerAddress(), { scope: '/', updateViaCache: 'none' });
      const { pushManager } = await navigator.serviceWorker.ready;
      const subscription = await pushManager.subscribe({ userVisibleOnly: true, applicationServerKey: publicKey });
      try {
        await give(subscription);
      } catch (error) {
        await subscription.unsubscribe();
        throw error;
      }
      return { kind: 'on' };
    },

    async unsubscribe(): Promise<PushOutcome> {
      const subscription = await subscriptionOf();
      if (subscription) {
        await api.send('POST', '/v1/push/unsubscribe', { endpoint: subscription.endpoint });
        await subscription.unsubscribe();
      }
      return { kind: 'off' };
    },
  };
}

/** Removes the notice of a decided request. @param id `<workspaceId>/<requestId>` */
export async function closeNotice(id: string): Promise<void> {
  if (!isSecureContext || !('serviceWorker' in navigator)) return;
  const registration = await navigator.serviceWorker.getRegistration('/');
  // Some browsers do not list their notices: such a notice stays until the user removes it.
  if (!registration || !('getNotifications' in registration)) return;
  for (const notice of await registration.getNotifications({ tag: id })) notice.close();
}
