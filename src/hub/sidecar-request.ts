import { accessSync, constants, statSync } from 'node:fs';
import { isAbsolute } from 'node:path';
import * as v from 'valibot';
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

/** What a request says of the sidecar: nothing, that there should be none, or which one. */
export type SidecarWish = undefined | 'none' | Sidecar;

function invalid(message: string, field: string, value?: string): never {
  throw hubError('invalidProxySidecar', message, value === undefined ? { field } : { field, path: value });
}

function existingFile(field: 'binaryPath' | 'configPath', path: string | undefined): string {
  if (!path) return invalid(`apiProxy.${field} is required.`, field);
  if (!isAbsolute(path) || path.includes('\0'))
    return invalid(`apiProxy.${field} must be an absolute path.`, field, path);
  try {
    if (statSync(path).isFile()) return path;
  } catch {
    // Whatever keeps us from seeing the file is the same to the caller: it cannot be used.
  }
  return invalid(`apiProxy.${field} is not an existing file.`, field, path);
}

function executable(path: string): string {
  try {
    accessSync(path, constants.X_OK);
    return path;
  } catch {
    return invalid('apiProxy.binaryPath is not executable.', 'binaryPath', path);
  }
}

const loopbackNames = new Set(['localhost', '[::1]']);

function loopbackEndpoint(endpoint: string | undefined): string {
  if (!endpoint || !URL.canParse(endpoint)) return invalid('apiProxy.endpoint must be an absolute URL.', 'endpoint');
  const url = new URL(endpoint);
  if (url.protocol !== 'http:') return invalid('apiProxy.endpoint must be an http URL.', 'endpoint');
  if (!loopbackNames.has(url.hostname) && !/^127\.\d+\.\d+\.\d+$/.test(url.hostname)) {
    return invalid('apiProxy.endpoint must be a loopback address.', 'endpoint');
  }
  if (url.username || url.password) return invalid('apiProxy.endpoint must not carry credentials.', 'endpoint');
  return endpoint.replace(/\/+$/, '');
}

/**
 * Checks the `apiProxy` part of `ensure` and `restart` (specification §2.5, DESIGN §5).
 *
 * @throws HttpError 400 `invalidProxySidecar`
 */
export function parseSidecarWish(value: unknown): SidecarWish {
  if (value === undefined || value === null) return undefined;
  const parsed = v.safeParse(ApiProxyRequest, value);
  if (!parsed.success) {
    const [issue] = parsed.issues;
    return invalid(`apiProxy is invalid: ${issue.message}`, v.getDotPath(issue) ?? 'apiProxy');
  }
  const request = parsed.output;
  if (!request.enabled) return 'none';
  const binaryPath = executable(existingFile('binaryPath', request.binaryPath));
  const configPath = existingFile('configPath', request.configPath);
  const endpoint = loopbackEndpoint(request.endpoint);
  if (!request.apiKey?.trim()) return invalid('apiProxy.apiKey is required.', 'apiKey');
  return { binaryPath, configPath, endpoint, apiKey: request.apiKey };
}

/** True when both are the same sidecar; an absent wish is no opinion and differs from nothing. */
export function differs(wish: SidecarWish, active: Sidecar | null): boolean {
  if (wish === undefined) return false;
  if (wish === 'none' || active === null) return wish !== 'none' || active !== null;
  return (
    wish.binaryPath !== active.binaryPath ||
    wish.configPath !== active.configPath ||
    wish.endpoint !== active.endpoint ||
    wish.apiKey !== active.apiKey
  );
}
