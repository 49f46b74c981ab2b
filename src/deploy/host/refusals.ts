/** A host that GitHub can reach and a certificate authority can certify. */
export interface PublicHost {
  readonly kind: 'dns' | 'ipv4' | 'ipv6';
  /** Form for URLs and the Caddyfile: ASCII lower case name, dotted IPv4, or RFC 5952 IPv6 without brackets. */
  readonly name: string;
  /** Spelling for people: Unicode of an internationalised name where that leads back to `name`; otherwise `name`. */
  readonly display: string;
  /** `https://name`, IPv6 in brackets. */
  readonly origin: string;
}

export interface Refusal {
  readonly ok: false;
  readonly code: HostRefusalCode;
  /** Problem and solution; safe to print: no control characters, no password, no query. */
  readonly message: string;
}

export type HostVerdict = { readonly ok: true; readonly host: PublicHost } | Refusal;

export interface HostOptions {
  /** Lets the DNS names through that are set aside for tests, examples and private networks; for our own internal CA only. */
  readonly allowTestNames?: boolean;
}

/** Longest piece of the typed text that a message repeats, in code points. */
const longest = 80;

/**
 * Makes a typed text safe for a terminal and a log: in quotes, cut, everything invisible as its code point, and without the
 * places where secrets are (before an `@`, after `?` or `#`).
 */
export function quoted(text: string): string {
  const at = text.lastIndexOf('@');
  const open = at < 0 ? text : `…${text.slice(at)}`;
  const points = Array.from(open.slice(0, 4 * longest).replace(/[?#].*$/su, '…'), visible);
  return `“${points.slice(0, longest).join('')}${points.length > longest ? '…' : ''}”`;
}

function visible(point: string): string {
  return /[\p{C}\p{Z}\p{Default_Ignorable_Code_Point}]/u.test(point) && point !== ' ' ? codePoint(point) : point;
}

/** `U+200B`, the way Unicode names a character. */
export function codePoint(point: string): string {
  return `U+${(point.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}`;
}

const givePublic = 'Give the public address of this server or a DNS name that points to it.';
const giveHost = 'Give only a DNS name or a public IP address.';
const within = (what: string) => (seen: string, block: string) => `${seen} is ${what}: ${block}. ${givePublic}`;
const carries = (seen: string, detail: string) =>
  `${seen} carries an IPv4 address inside an IPv6 one: ${detail}. ${givePublic} An IPv4 address is given as IPv4.`;
const shaped = (what: string) => (seen: string, bare: string) =>
  `${seen} ${what}. ${bare ? `Give only ${bare}.` : giveHost}`;

/** Every reason to refuse a host, with its message. `detail` is the finding: a registry entry, a label, a character. */
const messages = {
  empty: () => `No host was given. ${giveHost}`,
  tooLong: (seen) => `${seen} is longer than the 253 characters a DNS name may have (RFC 1035). ${giveHost}`,
  whitespace: (seen) => `${seen} contains white space. ${giveHost}`,
  control: (seen) => `${seen} contains a control character. ${giveHost}`,
  invisible: (seen, point) =>
    `${seen} contains ${point}, an invisible character. Type the name again, or give its xn-- form.`,
  urlShaped: shaped('is a URL, not a host'),
  userinfo: shaped('has a user name before an @'),
  prefixLength: shaped('is a network, not one address'),
  path: shaped('has a path'),
  backslash: shaped('contains a backslash'),
  query: shaped('has a query'),
  fragment: shaped('has a fragment'),
  percent: shaped('contains a percent sign; host names are not percent-encoded'),
  wildcard: shaped('has a wildcard; webhooks go to one host'),
  port: shaped('has a port; the gateway serves 80 and 443 only'),
  brackets: shaped('has brackets, which are only for an IPv6 address'),
  ipv6Syntax: (seen) => `${seen} has colons and is not an IPv6 address (RFC 4291). ${giveHost}`,
  zoneId: (seen) =>
    `${seen} has a zone after its %, so it means something on one machine only (RFC 4007). ${givePublic}`,
  legacyIpv4: (seen, reading) =>
    `${seen} is not an IPv4 address of four decimal numbers without leading zeros${reading ? `; some programs read it as ${reading}` : ''}. ${givePublic}`,
  numericName: (seen) =>
    `${seen} ends in a number, so it is read as an IPv4 address, but is not valid as one (WHATWG URL). ${giveHost}`,
  emptyLabel: (seen) => `${seen} has two dots in a row or starts with one (RFC 1035). ${giveHost}`,
  labelTooLong: (seen, label) => `${seen}: ${label} is longer than 63 characters (RFC 1035). ${giveHost}`,
  labelHyphen: (seen, label) => `${seen}: ${label} starts or ends with a hyphen (RFC 1123). ${giveHost}`,
  labelCharacter: (seen, point) =>
    `${seen} contains ${point}; host names have letters, digits and hyphens (RFC 1123). ${giveHost}`,
  reservedLabel: (seen, label) =>
    `${seen}: ${label} has hyphens in third and fourth place, which is for xn-- names (RFC 5890); no public authority certifies it. ${giveHost}`,
  lookalikeDot: (seen, point) => `${seen} contains ${point}, which only looks like a dot. Write a plain dot.`,
  symbol: (seen, point) =>
    `${seen} contains ${point}, which is not a letter, mark or digit (RFC 5892). Give the name without it, or its xn-- form.`,
  notCanonical: (seen, canonical) =>
    `${seen} is spelled with characters that stand for others (UTS 46). If you mean ${canonical}, give that.`,
  idn: (seen) => `${seen} is not a valid internationalised name (UTS 46, RFC 5891). ${giveHost}`,
  specialUseName: (seen, entry) =>
    `${seen} is in ${entry}, a domain set aside for special use. Give a DNS name of your own that anyone can resolve.`,
  singleLabel: (seen) => `${seen} has no dot, so other hosts cannot resolve it. Give the full DNS name.`,
  privateUse: within('an address of a private network'),
  sharedAddress: within('an address behind a carrier’s NAT'),
  loopback: within('this machine’s own loopback address'),
  linkLocal: within('reachable on one network link only'),
  unspecified: within('no address of a host'),
  broadcast: within('a broadcast address'),
  multicast: within('a multicast address'),
  documentation: within('an address for documentation'),
  benchmarking: within('an address for benchmarks'),
  protocolAssignment: within('set aside for a protocol'),
  sharedService: within('an address of a service that many run, never of one server'),
  identifier: within('an identifier, not an address that packets are sent to'),
  discardOnly: within('an address whose packets are thrown away'),
  deprecated: within('no longer in use'),
  reserved: within('reserved and not assigned yet'),
  mappedIpv4: carries,
  compatibleIpv4: carries,
  translatedIpv4: carries,
  sixToFour: carries,
  teredo: carries,
  isatap: carries,
} as const satisfies Readonly<Record<string, (seen: string, detail: string) => string>>;

export type HostRefusalCode = keyof typeof messages;

/** Every code, for tables in documents and tests. */
export const refusalCodes = Object.keys(messages) as readonly HostRefusalCode[];

/** The refusal of `text` for the reason `code`. */
export function refuse(code: HostRefusalCode, text: string, detail = ''): Refusal {
  return { ok: false, code, message: messages[code](quoted(text), detail) };
}
