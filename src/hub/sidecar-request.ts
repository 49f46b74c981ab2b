import { accessSync, constants, statSync } from 'node:fs';
import { isAbsolute } from 'node:path';
import * as v from 'valibot';
import { isLoopback } from '../lib/index.ts';
import { ApiProxyRequest } from '../protocol/index.ts';
import { hubError } from './errors.ts';

/** A sidecar that may be started: every field checked. */
export interface Sidecar {
  readonly binaryPath: string;
  readonly configPath: string;
  /** Loopback http address without a trailing slash. */
  readonly endpoint: string;
  readonly apiKey: string;
}

/** The `apiProxy` part of a request: absent, a request for no sidecar, or the sidecar to use. */
export type SidecarRequest = undefined | 'none' | Sidecar;

function invalid(message: string, field: string, value?: string): never {
  throw hubError('invalidProxySidecar', message, value === undefined ? { field } : { field, path: value });
}

function existingFile(field: 'binaryPath' | 'configPath', path: string | undefined): string {
  if (!path) return invalid(`apiProxy.${field} is required.`, field);
  if (!isAbsolute(path) || path.includes('\0'))
    return invalid(`apiProxy.${field} must be an absolute path.`, field, path);
  if (!isRegularFile(path)) return invalid(`apiProxy.${field} is not an existing file.`, field, path);
  return path;
}

function isRegularFile(path: string): boolean {
  try {
    return statSync(path).isFile();
  } catch {
    // A file that cannot be examined, for any reason, cannot be used.
    return false;
  }
}

function readable(path: string): string {
  try {
    accessSync(path, constants.R_OK);
    return path;
  } catch {
    return invalid('apiProxy.configPath is not readable.', 'configPath', path);
  }
}

function executable(path: string): string {
  try {
    accessSync(path, constants.X_OK);
    return path;
  } catch {
    return invalid('apiProxy.binaryPath is not executable.', 'binaryPath', path);
  }
}

function loopbackEndpoint(endpoint: string | undefined): string {
  if (!endpoint || !URL.canParse(endpoint)) return invalid('apiProxy.endpoint must be an absolute URL.', 'endpoint');
  const url = new URL(endpoint);
  if (url.protocol !== 'http:') return invalid('apiProxy.endpoint must be an http URL.', 'endpoint');
  if (!isLoopback(url.hostname)) return invalid('apiProxy.endpoint must be a loopback address.', 'endpoint');
  if (url.username || url.password) return invalid('apiProxy.endpoint must not carry credentials.', 'endpoint');
  return endpoint.replace(/(?<!\/)\/+$/, '');
}

/**
 * Checks the `apiProxy` part of `ensure` and `restart` (specification §2.5). Messages never quote a value: one may be a key.
 *
 * @throws HttpError 400 `invalidProxySidecar`
 */
export function parseSidecarRequest(value: unknown): SidecarRequest {
  if (value === undefined || value === null) return undefined;
  const parsed = v.safeParse(ApiProxyRequest, value);
  if (!parsed.success) {
    const [issue] = parsed.issues;
    const field = v.getDotPath(issue) ?? 'apiProxy';
    return invalid(`apiProxy is invalid: ${field} must be ${issue.expected ?? 'valid'}.`, field);
  }
  const request = parsed.output;
  if (!request.enabled) return 'none';
  const binaryPath = executable(existingFile('binaryPath', request.binaryPath));
  const configPath = readable(existingFile('configPath', request.configPath));
  const endpoint = loopbackEndpoint(request.endpoint);
  if (!request.apiKey?.trim()) return invalid('apiProxy.apiKey is required.', 'apiKey');
  return { binaryPath, configPath, endpoint, apiKey: request.apiKey };
}

function isSame(one: Sidecar, other: Sidecar): boolean {
  return (
    one.binaryPath === other.binaryPath &&
    one.configPath === other.configPath &&
    one.endpoint === other.endpoint &&
    one.apiKey === other.apiKey
  );
}

/**
 * The sidecars requested for one workspace, by number. A machine knows only the number, because a request contains a key;
 * equal requests have the same number.
 */
export class SidecarRequests {
  readonly #sidecars = new Map<number, Sidecar>();
  #last = 0;

  /** The number of `sidecar`. Forgets every other one that is not `inUse`. */
  numberOf(sidecar: Sidecar, inUse: readonly unknown[]): number {
    for (const [number, known] of this.#sidecars) {
      if (isSame(known, sidecar)) return number;
      if (!inUse.includes(number)) this.#sidecars.delete(number);
    }
    this.#sidecars.set(++this.#last, sidecar);
    return this.#last;
  }

  get(number: number | null | undefined): Sidecar | null {
    return this.#sidecars.get(number ?? 0) ?? null;
  }
}
