/** A gateway in front of a recording backend, both gone when the test ends. */
import { join } from 'node:path';
import type { Test } from 'tap';
import { defaults } from '../../../src/deploy/defaults.ts';
import type { GatewayTimeouts } from '../../../src/deploy/files/caddyfile.ts';
import type { PublicHost } from '../../../src/deploy/host/index.ts';
import { caddy26, caddy211 } from '../tools.ts';
import type { Target } from './clients.ts';
import { type Gateway, startGateway } from './gateway.ts';
import { authorityOf, hosts, serverNameOf } from './hosts.ts';
import { startUpstream, type Upstream } from './upstream.ts';

export interface Setup {
  readonly host: PublicHost;
  readonly gateway: Gateway;
  readonly upstream: Upstream;
}

/** Hosts by version: 2.6 has no certificates for addresses. */
export const combinations = [
  { name: '2.6, a DNS host', find: caddy26, host: hosts.dns },
  { name: '2.11, a DNS host', find: caddy211, host: hosts.dns },
  { name: '2.11, an IPv4 host', find: caddy211, host: hosts.ipv4 },
  { name: '2.11, an IPv6 host', find: caddy211, host: hosts.ipv6 },
] as const;

type Combination = Pick<(typeof combinations)[number], 'find' | 'host'>;

/** A gateway for one test. */
export const setUp = (t: Test, combination: Combination, timeouts: Partial<GatewayTimeouts> = {}): Promise<Setup> =>
  start(t, combination, join(t.testdir({}), 'caddy'), timeouts);

/**
 * Gateways for the tests of a file that run one after the other and leave no request unfinished: one for each combination, which
 * ends with `t`. Each call returns its backend empty.
 */
export function sharedSetups(t: Test): (combination: Combination) => Promise<Setup> {
  const directory = t.testdir({});
  const started = new Map<Combination, Promise<Setup>>();
  return async (combination) => {
    const starting = started.get(combination) ?? start(t, combination, join(directory, `caddy-${started.size}`), {});
    started.set(combination, starting);
    const setup = await starting;
    setup.upstream.forget();
    return setup;
  };
}

async function start(
  t: Test,
  { find, host }: Combination,
  directory: string,
  timeouts: Partial<GatewayTimeouts>,
): Promise<Setup> {
  const program = await find();
  const upstream = await startUpstream();
  t.teardown(() => upstream.close());
  const gateway = await startGateway(program, directory, { host, upstream: upstream.address, timeouts });
  t.teardown(() => gateway.stop());
  return { host, gateway, upstream };
}

/** HTTPS side of the gateway, to which GitHub connects. */
export function encrypted({ host, gateway }: Setup, tls: Partial<NonNullable<Target['tls']>> = {}): Target {
  const expected = { ca: gateway.ca, identity: host.name, serverName: serverNameOf(host), alpn: ['http/1.1'] };
  return { port: gateway.ports.https, tls: { ...expected, ...tls } };
}

/** The head of a delivery, to which a body comes. */
export function deliveryHead({ host }: Setup, headers: readonly string[]): string {
  return [`POST ${defaults.webhookPath} HTTP/1.1`, `Host: ${authorityOf(host)}`, ...headers, '', ''].join('\r\n');
}

/** Headers of a delivery over HTTP/2. */
export const http2Delivery = ({ host }: Setup): { readonly [name: string]: string } => ({
  ':method': 'POST',
  ':path': defaults.webhookPath,
  ':authority': authorityOf(host),
});
