/** A domain that, with everything below it, is not for public hosts. */
export interface SpecialUseName {
  readonly domain: string;
  readonly source: string;
  /** May be used with an internal certificate authority: tests, examples, private networks. */
  readonly forTests: boolean;
}

const names = (source: string, list: string, forTests = false): SpecialUseName[] =>
  list.split(' ').map((domain) => ({ domain, source, forTests }));

/** IANA Special-Use Domain Names; then names that no public DNS will ever delegate, by decision of others. */
export const specialUseNames: readonly SpecialUseName[] = [
  ...names('RFC 6761', 'test example example.com example.net example.org', true),
  ...names('RFC 6761', 'localhost invalid 10.in-addr.arpa 168.192.in-addr.arpa'),
  ...names('RFC 6761', Array.from({ length: 16 }, (_, at) => `${16 + at}.172.in-addr.arpa`).join(' ')),
  ...names('RFC 6762', 'local 254.169.in-addr.arpa 8.e.f.ip6.arpa 9.e.f.ip6.arpa a.e.f.ip6.arpa b.e.f.ip6.arpa'),
  ...names('RFC 7686', 'onion'),
  ...names('RFC 8375', 'home.arpa'),
  ...names('RFC 8880', 'ipv4only.arpa 170.0.0.192.in-addr.arpa 171.0.0.192.in-addr.arpa'),
  ...names('RFC 9031', '6tisch.arpa'),
  ...names('RFC 9140', 'eap-noob.arpa'),
  ...names('RFC 9462', 'resolver.arpa'),
  ...names('RFC 9476', 'alt'),
  ...names('RFC 9665', 'service.arpa'),
  ...names('ICANN resolution 2024.07.29.06', 'internal', true),
  ...names('RFC 3172', 'arpa'),
  ...names('RFC 6762, appendix G', 'intranet private corp home lan'),
];
