import { isPublicAddress } from '../../../addresses/index.ts';
import type { DoctorContext } from '../context.ts';
import { ok, warn } from '../finding.ts';
import type { Finding } from '../types.ts';

/** A translated address (DNS64, RFC 6147) is the work of this network: GitHub cannot reach it. */
const isPublic = (address: string): boolean => isPublicAddress(address, { embedded: 'refuse' });

/** Whether the public host leads here. Behind a router it leads to an address that this host cannot know: never a failure. */
export async function dns(context: DoctorContext, signal: AbortSignal): Promise<Finding> {
  const { kind, name } = context.publicHost();
  const mine = context.host.addresses().filter(isPublic);
  const isHere = (address: string): boolean => mine.includes(address);
  const here = mine.length === 0 ? 'this host has no public address of its own' : `this host has ${mine.join(', ')}`;
  const behindRouter =
    'Right when a router or load balancer forwards ports 80 and 443 to this host; otherwise change it.';
  if (kind !== 'dns')
    return isHere(name)
      ? ok(`${name} is an address of this host.`)
      : warn(`${name} is the host; ${here}.`, behindRouter);
  const found = await context.host.resolve(name, signal).catch((error: NodeJS.ErrnoException) => error);
  if (found instanceof Error)
    return warn(`No name server answers (${found.code ?? found.message}).`, 'See /etc/resolv.conf of this host.');
  if (found.length === 0)
    return warn(`${name} has no address yet; ${here}.`, 'Add an A or AAAA record; a certificate can be had only then.');
  const seen = `${name} has ${found.join(', ')}`;
  const inside = found.filter((address) => !isPublic(address));
  if (inside.length > 0)
    return warn(`${seen}; ${inside.join(', ')} cannot be reached from the Internet.`, 'GitHub needs a public address.');
  const elsewhere = found.filter((address) => !isHere(address));
  return elsewhere.length === 0 ? ok(`${seen}, of this host.`) : warn(`${seen}; ${here}.`, behindRouter);
}
