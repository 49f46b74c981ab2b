import { GitError } from './error.ts';
import type { GitLimits } from './limits.ts';
import { checkRepositoryName } from './paths.ts';
import { CommandFailure, type NetworkAccess } from './runner.ts';
import type { RepositoryName } from './types.ts';

/** Access to remotes. */
export interface RemoteOptions {
  /** Base of `/owner/name.git`: `https://github.com`. Plain http for this machine only. */
  readonly gitEndpoint: string;
  /** For the demo and for tests: `file://` is allowed. */
  readonly allowFileProtocol?: boolean;
  /** `http://host:port`, in the form of `https_proxy`. */
  readonly proxy?: string;
  /** Certificates of a private authority, in PEM. */
  readonly caFile?: string;
}

const protocols = new Map<string, NetworkAccess['protocol']>([
  ['https:', 'https'],
  ['http:', 'http'],
  ['file:', 'file'],
]);

/** Base URL of git: the configured one, or else the one that belongs to the API of GitHub or of GitHub Enterprise. */
export function gitEndpointOf(apiEndpoint: string, gitEndpoint = ''): string {
  if (gitEndpoint !== '') return gitEndpoint;
  const { origin, hostname } = new URL(apiEndpoint);
  return hostname === 'api.github.com' ? 'https://github.com' : origin;
}

/** The remotes of one source. */
export class Remotes {
  readonly #base: string;
  readonly #protocol: NetworkAccess['protocol'];
  readonly #options: RemoteOptions;
  readonly #limits: GitLimits;

  /** @throws TypeError for an endpoint that is not allowed, with credentials, or with a query */
  constructor(options: RemoteOptions, limits: GitLimits) {
    const url = new URL(options.gitEndpoint);
    const protocol = protocols.get(url.protocol);
    const isLocal = /^(localhost|127(\.\d+){3}|\[::1\])$/.test(url.hostname);
    const isAllowed =
      protocol === 'https' || (protocol === 'http' && isLocal) || (protocol === 'file' && options.allowFileProtocol);
    if (!protocol || !isAllowed) throw new TypeError('The git endpoint must be https (http on this machine only)');
    if (url.username || url.password || url.search || url.hash) {
      throw new TypeError('The git endpoint must have no credentials, query or fragment');
    }
    this.#base = url.href.replace(/(?<!\/)\/+$/, '');
    this.#protocol = protocol;
    this.#options = options;
    this.#limits = limits;
  }

  url({ owner, name }: RepositoryName): string {
    checkRepositoryName(owner);
    checkRepositoryName(name);
    return `${this.#base}/${owner}/${name}.git`;
  }

  /** Access of one command to `url`. The token is in its environment only, and applies to this URL only. */
  access(url: string, token: string | null): NetworkAccess {
    const { proxy, caFile } = this.#options;
    const config: [string, string][] = [];
    if (proxy) config.push(['http.proxy', proxy]);
    if (caFile) config.push(['http.sslCAInfo', caFile]);
    const secrets: string[] = [];
    if (token) {
      const encoded = Buffer.from(`x-access-token:${token}`).toString('base64');
      config.push([`http.${url}.extraheader`, `AUTHORIZATION: basic ${encoded}`]);
      secrets.push(token, encoded);
    }
    return { protocol: this.#protocol, config, secrets, fileBytes: this.#limits.packBytes };
  }
}

/** Messages of a failed fetch on standard error; the first match counts. */
const failures: readonly { readonly sign: RegExp; readonly reason: string; readonly isRetryable: boolean }[] = [
  { sign: /couldn't find remote ref|no such remote ref/i, reason: 'the remote has no such ref', isRetryable: true },
  {
    sign: /unable to update url base from redirection|error: 30\d/i,
    reason: 'the remote redirects: the repository may have been renamed',
    isRetryable: false,
  },
  {
    sign: /error: 401|could not read (?:Username|Password)|Authentication failed|terminal prompts disabled/i,
    reason: 'the remote did not accept our credentials',
    isRetryable: true,
  },
  { sign: /error: 403/, reason: 'the remote refused access', isRetryable: false },
  { sign: /error: 404|repository '.*' not found/, reason: 'the remote has no such repository', isRetryable: false },
  { sign: /transport '.*' not allowed/, reason: 'the address of the remote is not allowed', isRetryable: false },
  { sign: /mismatched algorithms/, reason: 'the remote uses other object names', isRetryable: false },
  { sign: /file too large/i, reason: 'the pack is too large', isRetryable: false },
  { sign: /out of memory|cannot allocate memory/i, reason: 'its objects need too much memory', isRetryable: false },
];

/** Turns the failure of a fetch into one that names the failure of the remote. */
export function fetchFailure(error: unknown): unknown {
  if (!(error instanceof GitError)) return error;
  if (error.code === 'gitTimedOut') {
    return new GitError('reviewTargetFetchFailed', `The fetch took too long: ${error.message}`, {
      isRetryable: true,
      cause: error,
    });
  }
  const failure = error.cause;
  if (!(failure instanceof CommandFailure)) return error;
  const known = failures.find(({ sign }) => sign.test(failure.stderr));
  const reason = known?.reason ?? 'the remote could not be read';
  return new GitError('reviewTargetFetchFailed', `The fetch failed: ${reason} (${failure.stderr || failure.message})`, {
    isRetryable: known?.isRetryable ?? true,
    cause: failure,
  });
}
