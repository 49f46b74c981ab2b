import { type Fleet, HostUnavailableError } from '../../hosts/index.ts';
import { plainHost } from '../../lib/index.ts';
import { hubError } from '../errors.ts';
import type { Target } from './target.ts';

/** Runs work on a host. @throws HttpError `hostUnknown` or `hostUnreachable` */
export function onHost<T>(work: () => T): T {
  try {
    return work();
  } catch (error) {
    if (error instanceof HostUnavailableError) throw hubError(error.code, error.message, error.details);
    throw error;
  }
}

/** Target behind `/h/<host>/w/<id>/`: the page proxy of the remote Hub. Resolves at once, because a tunnel is either open or not. */
export async function hostTarget(fleet: Fleet, host: string, id: string): Promise<Target> {
  const { address } = onHost(() => fleet.connected(host));
  const { apiBaseUrl, socketPath, token } = address;
  const { origin, hostname, port } = new URL(apiBaseUrl);
  return {
    ...{ origin, host: plainHost(hostname), port: Number(port), socketPath, token },
    prefix: `/w/${id}`,
    confirm() {
      // A new tunnel may lead to another Hub, for which this token is not valid.
      if (onHost(() => fleet.connected(host)).address !== address)
        throw hubError('hostUnreachable', `The host ${host} has reconnected during the request. Try again.`, { host });
    },
    doubt() {},
  };
}
