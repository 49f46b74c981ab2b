import type { HostRefusalCode } from './refusals.ts';

/** A host that GitHub can reach and a certificate authority can certify. */
export interface PublicHost {
  readonly kind: 'dns' | 'ipv4' | 'ipv6';
  /** What goes into URLs and the Caddyfile: ASCII lower case name, dotted IPv4, or RFC 5952 IPv6 without brackets. */
  readonly name: string;
  /** As people write it: Unicode of an internationalised name where that leads back to `name`; otherwise `name`. */
  readonly display: string;
  /** `https://name`, IPv6 in brackets. */
  readonly origin: string;
}

export interface Refusal {
  readonly ok: false;
  readonly code: HostRefusalCode;
  /** What was seen and what to give instead; safe to print: no control characters, no password, no query. */
  readonly message: string;
}

export type HostVerdict = { readonly ok: true; readonly host: PublicHost } | Refusal;

export interface HostOptions {
  /** Lets the DNS names through that are set aside for tests, examples and private networks; for our own internal CA only. */
  readonly allowTestNames?: boolean;
}
