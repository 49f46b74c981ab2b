import { hash } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { type HttpProxy, proxyFor, throughProxy } from '../../../http/index.ts';
import type { PushMessage, PushSubscribeInput } from '../../../protocol/index.ts';
import { DeliveryError, deliveryTimeoutMs, failureOf, type Notice, unreachable } from '../delivery.ts';
import type { PushKeys } from './keys.ts';
import { EndpointError, type PushNetwork, parseEndpoint, pinned, publicAddresses } from './network.ts';

export interface PushSender {
  readonly keys: PushKeys;
  /** Contact of the sender: `mailto:` or `https:`. */
  readonly subject: string;
  readonly network: PushNetwork;
}

/** Shortest and longest time for which a push service holds a notice, in seconds. */
const [minTtlSeconds, maxTtlSeconds] = [30, 86_400];

/** Answers that say that a subscription has ended (RFC 8030, section 7.3). */
const goneStatuses: readonly number[] = [404, 410];

/**
 * Sends a notice to one browser: encrypted for it (RFC 8291), signed by this Hub (RFC 8292). The push service sees neither text nor
 * address, and holds the notice until its request declines itself.
 *
 * @throws DeliveryError
 */
export async function sendPush(
  { keys, subject, network }: PushSender,
  { endpoint, keys: browserKeys }: PushSubscribeInput,
  { id, title, body, inboxPath, expiresAt }: Notice,
  signal: AbortSignal,
): Promise<void> {
  const url = parseEndpoint(endpoint);
  const { buildPushPayload } = await import('@block65/webcrypto-web-push');
  const ttl = Math.min(Math.max(Math.ceil((expiresAt - Date.now()) / 1_000), minTtlSeconds), maxTtlSeconds);
  const message: PushMessage = { id, title, body, path: inboxPath };
  const payload = await buildPushPayload(
    // A notice that is sent again replaces the one that still waits at the service.
    { data: message, options: { ttl, urgency: 'high', topic: hash('sha256', id, 'base64url').slice(0, 32) } },
    { endpoint, expirationTime: null, keys: browserKeys },
    { subject, ...keys },
  );
  const { statusCode = 0, headers } = await post(url, payload, network, signal);
  if (goneStatuses.includes(statusCode))
    throw new DeliveryError({
      kind: 'gone',
      message: `${url.host} answered ${statusCode}: the browser has unsubscribed.`,
    });
  const failure = failureOf(url.host, statusCode, headers['retry-after'] ?? null);
  if (failure) throw new DeliveryError(failure);
}

/** One POST. Redirects are not followed: they could lead into the network of the Hub. The answer's body is not read. */
async function post(
  url: URL,
  { headers, body }: { readonly headers: Record<string, string>; readonly body: Uint8Array },
  network: PushNetwork,
  signal: AbortSignal,
): Promise<IncomingMessage> {
  const proxy = proxyFor(url);
  const addresses = await publicAddresses(url, network).catch((error: unknown) => {
    if (!(error instanceof EndpointError)) throw error;
    // Behind a proxy, this machine may resolve no name: the proxy does, and connects.
    if (proxy && error.mayPass) return [];
    throw error.mayPass ? unreachable(url.host) : new DeliveryError({ kind: 'refused', message: error.message });
  });
  const { Agent, request } = await import('node:https');
  return new Promise((resolve, reject) => {
    const sent = request(url, {
      method: 'POST',
      headers,
      ...(proxy ? { agent: new Agent(throughProxy(proxy)) } : { agent: false, lookup: pinned(addresses) }),
      signal: AbortSignal.any([signal, AbortSignal.timeout(deliveryTimeoutMs)]),
      ...network.request,
    });
    sent.once('response', (answer) => {
      answer.once('error', () => {});
      answer.destroy();
      resolve(answer);
    });
    // A service that switches protocols ends the request without an error.
    for (const end of ['error', 'close'] as const)
      sent.once(end, () => reject(unreachable(throughText(url.host, proxy))));
    sent.end(body);
  });
}

const throughText = (host: string, proxy: HttpProxy | undefined): string =>
  proxy ? `${host}, through the proxy ${proxy.shown},` : host;
