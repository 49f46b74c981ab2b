import { HubRequestError } from '../../client/index.ts';
import { clean } from '../../hosts/index.ts';
import { HttpError } from '../../http/index.ts';
import { messageOf } from '../../lib/index.ts';
import { hubErrors } from '../../protocol/index.ts';
import { hubError } from '../errors.ts';

/** Codes that a remote Hub may answer with in our name. Its 401 is about our token, not about that of the client. */
const passed: ReadonlySet<string> = new Set(
  Object.keys(hubErrors).filter((code) => code !== 'unauthorized' && code !== 'tokenRevoked'),
);

/**
 * Has a remote Hub do something. Its refusals pass, safe to show and after the name of the host.
 *
 * @throws HttpError of the remote Hub, or 502 `badGateway` without a usable answer
 */
export async function onRemote<T>(host: string, work: () => Promise<T>, signal: AbortSignal): Promise<T> {
  try {
    return clean(await work());
  } catch (error) {
    signal.throwIfAborted();
    const text = clean(messageOf(error)).slice(0, 1_000);
    if (error instanceof HubRequestError && passed.has(error.code) && error.status >= 400 && error.status < 600)
      throw new HttpError(error.status, error.code, `${host}: ${text}`, clean(error.details));
    throw hubError('badGateway', `The Hub of ${host} gave no usable answer: ${text}`, { host });
  }
}
