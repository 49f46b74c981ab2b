import { outgoingFetch } from '../../http/index.ts';
import { DeliveryError, deliveryTimeoutMs, failureOf, type Notice, unreachable } from './delivery.ts';

export interface NtfySettings {
  readonly Url: string;
  readonly Token: string;
}

/**
 * Publishes a notice to a topic: one POST. A topic is readable by its name, so that a notice names neither command nor token.
 *
 * @throws DeliveryError
 */
export async function sendToNtfy({ Url, Token }: NtfySettings, notice: Notice, signal: AbortSignal): Promise<void> {
  const { host } = new URL(Url);
  const response = await outgoingFetch(Url, {
    method: 'POST',
    // A redirect would carry the token elsewhere.
    redirect: 'error',
    signal: AbortSignal.any([signal, AbortSignal.timeout(deliveryTimeoutMs)]),
    headers: {
      title: 'Oratorio',
      tags: 'raised_hand',
      click: notice.actionUrl,
      ...(Token !== '' && { authorization: `Bearer ${Token}` }),
    },
    body: `${notice.title}\n${notice.body}`,
  }).catch(() => {
    throw unreachable(host);
  });
  await response.body?.cancel();
  const failure = failureOf(host, response.status, response.headers.get('retry-after'));
  if (failure) throw new DeliveryError(failure);
}
