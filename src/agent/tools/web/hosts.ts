/** Hosts as users name and approve them. Loads nothing: a turn asks here before any page is fetched. */
import { isIP } from 'node:net';
import type { ApprovalNeed } from '../../tool.ts';
import { refusal, WebError } from './errors.ts';

/** The URL a model wrote, if it is one that may be fetched at all. @throws WebError */
export function parseWebUrl(text: string, base?: URL): URL {
  if (!URL.canParse(text, base)) throw new WebError(`${JSON.stringify(text)} is not a valid URL`);
  const url = new URL(text, base);
  if (url.protocol !== 'http:' && url.protocol !== 'https:') {
    throw refusal(`only http and https can be fetched, not ${url.protocol}`);
  }
  if (url.username !== '' || url.password !== '') throw refusal('a URL with a user name or password in it');
  return url;
}

/** Host name without the brackets of an IPv6 address and the root's dot: `[::1]` → `::1`, `example.com.` → `example.com`. */
export const bareHost = (hostname: string): string =>
  hostname
    .toLowerCase()
    .replace(/^\[(.*)\]$/, '$1')
    .replace(/\.$/, '');

const portOf = (url: URL): string => url.port || (url.protocol === 'https:' ? '443' : '80');

/** Whether `Tools.Web.AllowedHosts` names the host of `url`. */
export const isAllowedHost = (url: URL, allowedHosts: readonly string[]): boolean =>
  allowedHosts.some((entry) => matches(entry, bareHost(url.hostname), portOf(url)));

/** `entry` is a user's: `host`, `host:port`, `[v6]:port` or a bare IPv6 address. */
function matches(entry: string, host: string, port: string): boolean {
  const wanted = entry.trim().toLowerCase();
  if (bareHost(wanted) === host) return true;
  const [, name, number] = /^(.*):(\d+)$/.exec(wanted) ?? [];
  return name !== undefined && isIP(wanted) !== 6 && bareHost(name) === host && number === port;
}

/** Scheme, host and port: the scope of one approval. */
function originOf(url: URL): string {
  const host = bareHost(url.hostname);
  return `${url.protocol}//${isIP(host) === 6 ? `[${host}]` : host}:${portOf(url)}`;
}

export const webScope = (url: URL): string => `web:${originOf(url)}`;

/** The question about a page: its whole address is shown, because it can carry data out. */
export function needOf(url: URL): ApprovalNeed {
  const covers = `fetching any address of ${originOf(url)}`;
  const reason = 'The address is sent to that host, with all that is in it.';
  return { kind: 'remoteResource', operation: 'fetch', target: url.href, scopeKey: webScope(url), covers, reason };
}

/** Whether approval of `from` covers `to`: the same scheme, host and port, or its upgrade to https at the usual ports. */
export function isSameHost(from: URL, to: URL): boolean {
  if (originOf(from) === originOf(to)) return true;
  const isUpgrade = from.protocol === 'http:' && to.protocol === 'https:' && from.port === '' && to.port === '';
  return isUpgrade && bareHost(from.hostname) === bareHost(to.hostname);
}
