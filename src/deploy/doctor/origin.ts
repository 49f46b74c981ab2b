/** Address of a remote, parsed. */
export interface Origin {
  /** Lower case, without a port. */
  readonly host: string;
  /** `owner/name`, without `.git`. */
  readonly path: string;
  /** Something in it opens the repository: a password, or a token in the place of a name. */
  readonly hasCredentials: boolean;
}

const short = /^(?:([^@/:]+)@)?([^@/:]+):(?!\/\/|:)(.+)$/;

/** Reads `https://…`, `ssh://…` and `git@host:owner/name`. @returns null for a path and everything else */
export function originOf(url: string): Origin | null {
  if (URL.canParse(url) && /^(?:https?|ssh|git):$/.test(new URL(url).protocol)) {
    const { protocol, hostname, pathname, username, password } = new URL(url);
    const hasCredentials = password !== '' || (username !== '' && protocol !== 'ssh:');
    return hostname === '' ? null : { host: hostname.toLowerCase(), path: named(pathname), hasCredentials };
  }
  const found = short.exec(url);
  if (!found || /^[a-z][a-z0-9+.-]*:\/\//i.test(url)) return null;
  const [, , host = '', path = ''] = found;
  return { host: host.toLowerCase(), path: named(path), hasCredentials: false };
}

const named = (path: string): string => path.replace(/^\/+|\/+$/g, '').replace(/\.git$/i, '');
