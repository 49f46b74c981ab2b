/** Requests of untrusted clients, and the gateway's expected answers. Targets are written as they go over the wire. */
import { defaults } from '../../../src/deploy/defaults.ts';
import type { PublicHost } from '../../../src/deploy/host/index.ts';
import { authorityOf } from './hosts.ts';

/** `delivered`: it reached the backend, which said 202. `refused`: 400 by one version, 404 by the other. */
export type Outcome = 'delivered' | 'refused' | 200 | 308 | 400 | 404;

export interface Row {
  readonly wire: 'http1' | 'http2' | 'clear';
  readonly method: string;
  readonly target: string;
  /** The `Host` header, or `:authority`; null: none. */
  readonly host: string | null;
  readonly headers?: readonly string[];
  readonly expected: Outcome;
}

const path = defaults.webhookPath;

const otherMethods = [
  ...['GET', 'HEAD', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE', 'PROPFIND', 'PURGE', 'QUERY'],
  ...['post', 'Post', 'POSTS', 'POS'],
];

const otherPaths = [
  ...['/', '/health', '/healthz', '/ready', '/metrics', '/review', '/openapi.json', '/favicon.ico'],
  ...['/api', '/api/v1', '/api/v1/', '/api/v1/health', '/api/v1/items', '/api/v1/settings', '/api/v1/events'],
  ...['/api/v1/sources', '/api/v1/sources/github', '/api/v1/sources/gitlab/webhook', '/config/', '/load', '/id/x'],
  ...['/.well-known/security.txt', '/.well-known/acme-challenge/token', '/.git/config', '/.env'],
];

/** Spellings of the same resource for a lenient server. */
const spellings = [
  ...[`${path}/`, `${path}//`, `${path}/.`, `${path}/..`, `${path}/x`, `${path}x`, `${path}s`, path.slice(0, -1)],
  ...[`${path}?`, `${path}?x=1`, `${path}?x=1&y=2`, `${path}#`, `${path}#fragment`, `${path};x=1`, `${path}%3Fx=1`],
  ...[path.toUpperCase(), '/API/v1/sources/github/webhook', '/api/V1/sources/github/webhook'],
  ...['/api/v1/sources/GitHub/webhook', '/api/v1/sources/github/Webhook', '/api/v1/sources/github/webhooK'],
  ...['/api/v1/sources/github/%77ebhook', '/api/v1/sources/github/webhoo%6b', '/api/v1/sources/github/webhoo%6B'],
  ...['/%61pi/v1/sources/github/webhook', '/api%2Fv1/sources/github/webhook', '/api%2fv1%2fsources%2fgithub%2fwebhook'],
  ...['/api/v1/sources/github%2Fwebhook', '/api/v1/sources/github%5Cwebhook', '/api/v1/sources/github\\webhook'],
  ...[`/${path}`, `//${path}`, '/api//v1/sources/github/webhook', '/api/v1/sources/github//webhook'],
  ...[`/.${path}`, `/x/..${path}`, '/api/./v1/sources/github/webhook', '/api/v1/sources/x/../github/webhook'],
  ...['/api/v1/sources/github/x/../webhook', '/api/v1/sources/github/%2e/webhook', `/x/%2e%2e${path}`, `/..${path}`],
  ...[`${path}%20`, `${path}%00`, `${path}%0a`, `${path}%0d%0aX: y`.replace(' ', '%20'), `${path}%2F`, `${path}%23`],
  ...[`${path}*`, `${path}.json`, '/api/v1/sources/github/web%C2%ADhook', '/api/v1/sources/github/%ef%bd%97ebhook'],
];

/** Foreign names for a gateway of `authority`. */
const otherHosts = (authority: string): readonly string[] => [
  ...['evil.test', 'localhost', '127.0.0.1', '[::1]', 'backend', 'backend:5087', '10.0.0.1', '[2600:1::6]', '9.9.9.8'],
  ...[`x.${authority}`, `${authority}.evil.test`, `x${authority}`, `${authority}.`, `www.${authority}`, '*', '_'],
];

const requests = (
  wires: readonly Row['wire'][],
  methods: readonly string[],
  targets: readonly string[],
  hosts: readonly (string | null)[],
  expected: Outcome,
): Row[] =>
  wires.flatMap((wire) =>
    methods.flatMap((method) =>
      targets.flatMap((target) => hosts.map((host) => ({ wire, method, target, host, expected }))),
    ),
  );

const encrypted = ['http1', 'http2'] as const;

/** Everything that can be said of a gateway for `host`, with the answer to each. */
export function requestsFor(host: PublicHost): readonly Row[] {
  const own = authorityOf(host);
  const foreign = otherHosts(own).filter(isAuthority);
  return [
    ...requests(encrypted, ['POST'], [path], [own, `${own}:443`, own.toUpperCase()], 'delivered'),
    ...requests(encrypted, otherMethods, [path], [own], 404),
    ...requests(encrypted, ['GET', 'POST'], otherPaths, [own], 404),
    ...requests(encrypted, ['POST'], spellings, [own], 404),
    ...requests(encrypted, ['POST'], [path, '/'], foreign, 404),
    ...requests(encrypted, ['GET'], ['/health'], foreign, 404),
    ...rawTargets(own),
    ...rawHosts(own),
    ...requests(
      ['clear'],
      ['GET', 'POST', 'PUT', 'HEAD', 'OPTIONS'],
      [path, '/', '/health?x=1'],
      [own, `${own}:80`],
      308,
    ),
    ...requests(['clear'], ['GET'], ['/.well-known/acme-challenge/token', '//evil.test/', '/%2e%2e'], [own], 308),
    ...requests(['clear'], ['GET', 'POST'], [path, '/', '/.well-known/acme-challenge/token'], foreign, 404),
    ...rawClear(own),
  ];
}

/** An IPv6 address has no names below or above it. */
const isAuthority = (text: string): boolean => !/.\[|\]\./.test(text);

/** Request lines that only a socket can send. */
function rawTargets(own: string): Row[] {
  const row = (target: string, expected: Outcome, method = 'POST'): Row => ({
    ...{ wire: 'http1', method, target, host: own, expected },
  });
  return [
    row(`https://${own}${path}`, 404),
    row(`http://${own}${path}`, 404),
    row(`https://evil.test${path}`, 404),
    row(path.slice(1), 400),
    row('*', 404),
    row('*', 404, 'GET'),
    // Go's HTTP server answers this one itself, with nothing.
    row('*', 200, 'OPTIONS'),
    row('', 400),
    row(`${path}\0`, 400),
    row(`${path}\t`, 400),
    row(`${path}\x7f`, 400),
    row(`${path} x`, 400),
    row(`${path}%`, 400),
    row(`${path}%zz`, 400),
    row(`${path}\xe9`, 404),
    row('evil.test:443', 404, 'CONNECT'),
    row(`${own}:443`, 404, 'CONNECT'),
    row(path, 404, 'CONNECT'),
    row(path, 400, 'PO ST'),
    row(path, 400, ''),
  ];
}

function rawHosts(own: string): Row[] {
  const row = (host: string | null, expected: Outcome, headers: readonly string[] = []): Row => ({
    ...{ wire: 'http1', method: 'POST', target: path, host, expected, headers },
  });
  return [
    row(null, 400),
    row('', 'refused'),
    row(own, 400, [`Host: ${own}`]),
    row(own, 400, ['Host: evil.test']),
    row('evil.test', 400, [`Host: ${own}`]),
    row(`${own} evil.test`, 400),
    row(`${own},evil.test`, 404),
    row(`user@${own}`, 400),
    row(`${own}/x`, 400),
    row('evil.test', 404, [`X-Forwarded-Host: ${own}`, `Forwarded: host=${own}`]),
    row('evil.test', 404, [`X-Original-URL: ${path}`, `X-Rewrite-URL: ${path}`]),
  ];
}

function rawClear(own: string): Row[] {
  const row = (method: string, target: string, host: string | null, expected: Outcome): Row => ({
    ...{ wire: 'clear', method, target, host, expected },
  });
  return [
    row('GET', '*', own, 404),
    row('OPTIONS', '*', own, 200),
    row('GET', `http://${own}/`, 'evil.test', 308),
    row('GET', 'http://evil.test/', own, 404),
    row('CONNECT', 'evil.test:443', own, 404),
    row('GET', '/', null, 400),
    row('GET', '/', '', 'refused'),
    row('GET', '/', `user@${own}`, 400),
  ];
}
