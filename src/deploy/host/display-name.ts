import { domainToUnicode } from 'node:url';
import { nameFault } from './name-fault.ts';
import { toAscii } from './to-ascii.ts';

/** A DNS name as people write it: its Unicode, if typing that leads back to the name and nothing in it is unseen. */
export function displayName(name: string): string {
  const unicode = domainToUnicode(name);
  if (nameFault(unicode)) return name;
  const back = toAscii(unicode);
  return back.ok && back.name === name ? unicode : name;
}
