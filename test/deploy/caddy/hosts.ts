/** Public hosts of each kind. No packet is sent to them: clients connect to the loopback, as through any NAT. */
import type { PublicHost } from '../../../src/deploy/host/index.ts';

type Kind = PublicHost['kind'];

const host = (kind: Kind, name: string): PublicHost => {
  const authority = kind === 'ipv6' ? `[${name}]` : name;
  return { kind, name, display: name, origin: `https://${authority}` };
};

export const hosts: Readonly<Record<Kind, PublicHost>> = {
  dns: host('dns', 'hooks.example.test'),
  ipv4: host('ipv4', '9.9.9.9'),
  ipv6: host('ipv6', '2600:1::5'),
};

/** Form in URLs and `Host` headers. */
export const authorityOf = ({ origin }: PublicHost): string => origin.slice('https://'.length);

/** Name in a handshake: addresses are not named (RFC 6066, section 3). */
export const serverNameOf = ({ kind, name }: PublicHost): string => (kind === 'dns' ? name : '');
