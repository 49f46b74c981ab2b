import { isIP } from 'node:net';
import { defaults } from '../defaults.ts';
import { DeployError } from '../errors.ts';
import type { PublicHost } from '../host/index.ts';
import { acmeEmail } from './acme-email.ts';
import { marked } from './marker.ts';

/** Certificate issuer: Let's Encrypt, its untrusted staging environment, or a CA of the gateway itself. */
export type Certificates = 'production' | 'staging' | 'internal';

export interface CaddyfileOptions {
  readonly host: PublicHost;
  /** Address at which the certificate authority contacts this account. */
  readonly acmeEmail: string | null;
  readonly certificates: Certificates;
  /** `name:port` of the backend, as the gateway's network knows it. */
  readonly upstream?: string;
  /** Where the gateway itself listens; GitHub and the certificate authority always come to 80 and 443. */
  readonly ports?: Ports;
  readonly timeouts?: Partial<GatewayTimeouts>;
}

interface Ports {
  readonly http: number;
  readonly https: number;
}

/** All in seconds. */
export interface GatewayTimeouts {
  readonly readHeader: number;
  /** From the first byte of a request to the last of its body. */
  readonly readBody: number;
  readonly write: number;
  readonly idle: number;
  readonly dialUpstream: number;
  readonly awaitUpstream: number;
}

/** GitHub gives a delivery up after 10 s, so a slower client is not GitHub. */
export const gatewayTimeouts: GatewayTimeouts = {
  readHeader: 10,
  readBody: 15,
  write: 60,
  idle: 60,
  dialUpstream: 5,
  awaitUpstream: 30,
};

const [httpPort, httpsPort] = defaults.gatewayPorts;
/** Limit of a request line and its headers (design §5). */
const headerKibibytes = 16;
const mebibyte = 1024 * 1024;

const directories: Readonly<Record<Exclude<Certificates, 'internal'>, string>> = {
  production: 'https://acme-v02.api.letsencrypt.org/directory',
  staging: 'https://acme-staging-v02.api.letsencrypt.org/directory',
};

/** A line, or lines in braces after their header. */
type Directive = string | Block;
interface Block {
  readonly header: string;
  readonly entries: readonly Directive[];
}
const block = (header: string, ...entries: readonly Directive[]): Block => ({ header, entries });

/**
 * The gateway's file with our mark (specification §2.9), for Caddy 2.6 and later; an address as host needs Caddy 2.11.
 * Exactly one request reaches the backend: POST of the webhook's path in this spelling, on this host, by TLS (specification §4.4,
 * gateway rules 1 to 4). Port 80 validates certificates and sends this host to HTTPS. All else is 404.
 * @throws DeployError `invalidInput`, `hostRefused` for values that must not get into the file.
 */
export function caddyfile(options: CaddyfileOptions): string {
  return marked(gatewayText(options));
}

/** The gateway's file without our mark: for people who write the file themselves. */
export function gatewayText(options: CaddyfileOptions): string {
  const address = siteAddress(options.host);
  const ports = options.ports ?? { http: httpPort, https: httpsPort };
  const sites = [
    block('', ...globalOptions(options, ports)),
    block(`https://${address}`, ...tls(options), ...routes(options)),
    // `{uri}` of `GET *` is not a path. The host is ours: Caddy's own redirect forgets the brackets of an IPv6 address.
    block(`http://${address}`, `redir /* https://${address}{uri} 308`, 'respond 404'),
    // Without these two, Caddy answers other hosts with an empty 200.
    block(`:${ports.https}`, 'respond 404'),
    block('http://', 'respond 404'),
  ];
  return sites.map((site) => print(site)).join('\n');
}

function globalOptions({ host, certificates, timeouts }: CaddyfileOptions, ports: Ports): Directive[] {
  return [
    'admin off',
    'auto_https disable_redirects',
    ...(ports.http === httpPort ? [] : [`http_port ${ports.http}`]),
    ...(ports.https === httpsPort ? [] : [`https_port ${ports.https}`]),
    // Clients name no server in the handshake when they were given an address.
    ...(host.kind === 'dns' ? [] : [`default_sni ${host.name}`]),
    ...(certificates === 'internal' ? ['skip_install_trust'] : []),
    // Errors are logged with the request, whose headers hold secrets.
    block('log', block('format filter', 'wrap json', block('fields', 'request>headers delete', 'resp_headers delete'))),
    serverOptions(ports.https, 'h1 h2', timeouts),
    // With h2, Caddy 2.11 first awaits the 24 bytes that HTTP/2 begins with, for as long as they take.
    serverOptions(ports.http, 'h1', timeouts),
  ];
}

function serverOptions(port: number, protocols: string, timeouts: CaddyfileOptions['timeouts']): Block {
  const { readHeader, readBody, write, idle } = { ...gatewayTimeouts, ...timeouts };
  return block(
    `servers :${port}`,
    `protocols ${protocols}`,
    `max_header_size ${headerKibibytes}KiB`,
    block('timeouts', `read_header ${readHeader}s`, `read_body ${readBody}s`, `write ${write}s`, `idle ${idle}s`),
  );
}

/** One issuer, named: Caddy would otherwise try another authority, which knows neither profiles nor addresses. */
function tls({ host, certificates, acmeEmail: email }: CaddyfileOptions): Directive[] {
  if (certificates === 'internal') return [block('tls', 'issuer internal')];
  const directory = `dir ${directories[certificates]}`;
  const contact = email === null ? [] : [`email ${acmeEmail(email)}`];
  // Let's Encrypt certifies addresses by this profile alone, and Caddy cannot prove them by TLS-ALPN.
  const ofAddress = host.kind === 'dns' ? [] : ['profile shortlived', 'disable_tlsalpn_challenge'];
  return [block('tls', block('issuer acme', directory, ...contact, ...ofAddress))];
}

function routes({ upstream, timeouts }: CaddyfileOptions): Directive[] {
  const { dialUpstream, awaitUpstream } = { ...gatewayTimeouts, ...timeouts };
  const backend = checkedUpstream(upstream ?? `backend:${defaults.containerPorts.backend}`);
  return [
    // Caddy's own matchers of paths are blind to case, queries, percent-encoding, doubled slashes and dots.
    block('@delivery', 'method POST', `expression \`{http.request.orig_uri} == "${defaults.webhookPath}"\``),
    block(
      'handle @delivery',
      block('request_body', `max_size ${defaults.webhookBodyBytes / mebibyte}MiB`),
      block(
        `reverse_proxy ${backend}`,
        // The backend answers to no name but its own host's; the name of the request has been checked here.
        'header_up Host localhost',
        // Caddy replaces the `X-Forwarded-*` headers that it knows; other claims of a client are removed.
        'header_up -Forwarded',
        'header_up -X-Real-IP',
        // A delivery never turns into a tunnel.
        'header_up -Connection',
        'header_up -Upgrade',
        block(
          'transport http',
          `dial_timeout ${dialUpstream}s`,
          `response_header_timeout ${awaitUpstream}s`,
          // A kept connection would lose a delivery when the backend closes it.
          'keepalive off',
          'compression off',
        ),
      ),
    ),
    block('handle', 'respond 404'),
  ];
}

/** Writes a host of any value so that Caddy cannot read it as more than a host. */
function siteAddress({ kind, name }: PublicHost): string {
  const isSound = {
    dns: /^(?=.{1,253}$)(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z](?:[a-z0-9-]{0,61}[a-z0-9])$/.test(name),
    ipv4: isIP(name) === 4,
    ipv6: isIP(name) === 6 && /^[0-9a-f:.]+$/.test(name),
  }[kind];
  if (!isSound) throw new DeployError('hostRefused', 'The public host is not a canonical DNS name or address.');
  return kind === 'ipv6' ? `[${name}]` : name;
}

function checkedUpstream(upstream: string): string {
  if (/^[a-z0-9][a-z0-9.-]*:\d{1,5}$/.test(upstream)) return upstream;
  throw new DeployError('invalidInput', 'The upstream of the gateway is not name:port.');
}

/** Prints an entry in the format of `caddy fmt`. */
function print(entry: Directive, indent = ''): string {
  if (typeof entry === 'string') return `${indent}${entry}\n`;
  const inner = entry.entries.map((each) => print(each, `${indent}\t`)).join('');
  return `${indent}${entry.header === '' ? '' : `${entry.header} `}{\n${inner}${indent}}\n`;
}
