import { displayName } from './display-name.ts';
import type { HostOptions, HostVerdict } from './host.ts';
import { nameFault } from './name-fault.ts';
import { refuse } from './refusals.ts';
import { specialName } from './special-name.ts';
import { toAscii } from './to-ascii.ts';

/** Judges a text that has no URL syntax in it and is no IP address: is it a name of the public DNS? */
export function classifyName(text: string, { allowTestNames = false }: HostOptions): HostVerdict {
  const typed = text.replace(/\.$/, '');
  const typedFault = nameFault(typed);
  if (typedFault) return refuse(typedFault.code, text, typedFault.detail);
  const ascii = toAscii(typed);
  if (!ascii.ok) return refuse(ascii.code, text, ascii.detail);
  const { name } = ascii;
  const fault = nameFault(name);
  if (fault) return refuse(fault.code, text, fault.detail);
  const special = specialName(name);
  if (special && !(allowTestNames && special.forTests)) {
    return refuse('specialUseName', text, `${special.domain} (${special.source})`);
  }
  if (!name.includes('.')) return refuse('singleLabel', text);
  return { ok: true, host: { kind: 'dns', name, display: displayName(name), origin: `https://${name}` } };
}
