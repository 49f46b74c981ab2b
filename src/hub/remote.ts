import { HubRequestError } from '../client/index.ts';
import { clean } from '../hosts/index.ts';
import { HttpError } from '../http/index.ts';
import { messageOf } from '../lib/index.ts';
import { hubErrors, missingRoute } from '../protocol/index.ts';
import { hubError } from './errors.ts';

/** Error codes of a remote Hub that are passed to the client. Its 401 is left out: it concerns the token of this Hub. */
const passed: ReadonlySet<string> = new Set(
  Object.keys(hubErrors).filter((code) => code !== 'unauthorized' && code !== 'tokenRevoked'),
);

/**
 * Sends a request to a remote Hub. Its refusals are passed on, safe to show and prefixed with the host's name.
 *
 * @throws HttpError of the remote Hub, or 502 `badGateway` without a usable answer
 */
export async function onRemote<T>(host: string, work: () => Promise<T>, signal: AbortSignal): Promise<T> {
  try {
    return clean(await work());
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof HubRequestError && error.message === missingRoute)
      throw hubError(
        'notFound',
        `The Hub of ${host} is of an earlier version and cannot do this. Install the version of this machine there: oratorio hosts add ADDRESS --name ${host} --install`,
        { host },
      );
    const text = clean(messageOf(error)).slice(0, 1_000);
    if (error instanceof HubRequestError && passed.has(error.code) && error.status >= 400 && error.status < 600)
      throw new HttpError(error.status, error.code, `${host}: ${text}`, clean(error.details));
    throw hubError(
      'badGateway',
      `The Hub of ${host} sent an invalid answer: ${text.replace(/\.$/, '')}. Check: oratorio hosts doctor ${host}`,
      { host },
    );
  }
}
