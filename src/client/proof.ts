/** The client's side of the server proof (docs/server-proof.md). Needs `fetch` and `crypto.subtle` only. */
import * as v from 'valibot';
import {
  authorityOf,
  defaults,
  keyIdLength,
  keyIdMessage,
  type ProofRole,
  proofMessage,
  proofPaths,
  ServerProof,
  shortestProofToken,
} from '../protocol/index.ts';
import { ServerNotProvenError } from './errors.ts';

export interface ProofRequest {
  readonly role: ProofRole;
  /** Base address of the server. */
  readonly url: string;
  readonly token: string;
  readonly signal?: AbortSignal | undefined;
  /** Milliseconds for the whole exchange. */
  readonly timeoutMs?: number | undefined;
}

const encoder = new TextEncoder();
const nonceBytes = 32;
/** A proof is about 120 bytes; a longer answer is refused. */
const maxAnswerBytes = 4_096;

/**
 * Has the server at `url` prove that it holds `token`, without sending the token. An address of `https:` is proven by its
 * certificate: no request is made.
 *
 * @throws ServerNotProvenError when the server cannot be reached, has no proof route, does not know the token, or answers with
 *   anything but the proof; the reason of `signal` when it aborts
 * @example await proveServer({ role: 'dashboard', url: 'http://127.0.0.1:41235', token });
 */
export async function proveServer(request: ProofRequest): Promise<void> {
  const { role, token, signal, timeoutMs = defaults.client.statusTimeoutMs } = request;
  const url = new URL(`${request.url.replace(/\/+$/, '')}${proofPaths[role]}`);
  if (url.protocol === 'https:') return;
  const authority = authorityOf(url);
  const refuse = (reason: ServerNotProvenError['reason'], why: string, cause?: unknown): never => {
    throw new ServerNotProvenError(reason, `The server at ${authority} did not prove itself: ${why}.`, { cause });
  };
  if (token.length < shortestProofToken)
    refuse('weakToken', `the token is shorter than ${shortestProofToken} characters`);
  signal?.throwIfAborted();
  const key = await crypto.subtle.importKey('raw', encoder.encode(token), { name: 'HMAC', hash: 'SHA-256' }, false, [
    'sign',
    'verify',
  ]);
  const nonce = base64Url(crypto.getRandomValues(new Uint8Array(nonceBytes)));
  const keyId = base64Url(new Uint8Array(await crypto.subtle.sign('HMAC', key, encoder.encode(keyIdMessage))));
  url.searchParams.set('nonce', nonce);
  url.searchParams.set('key', keyId.slice(0, keyIdLength));
  const timeout = AbortSignal.timeout(timeoutMs);
  const ending = signal ? AbortSignal.any([signal, timeout]) : timeout;
  const answer = await fetch(url, { redirect: 'error', signal: ending })
    .then(async (response) => ({ status: response.status, text: await readShort(response) }))
    .catch((error: unknown) => {
      signal?.throwIfAborted();
      const why = timeout.aborted ? 'it does not answer in time' : `it does not answer (${codeOf(error)})`;
      return refuse('unreachable', why, error);
    });
  if (answer.status === 404) refuse('noRoute', 'it has no proof route');
  if (answer.status === 401) refuse('unknownToken', 'it does not know the token');
  if (answer.status === 403) refuse('otherAddress', 'it says that it listens at another address');
  const parsed = v.safeParse(v.pipe(v.string(), v.parseJson(), ServerProof), answer.text);
  if (answer.status !== 200 || !parsed.success) return refuse('wrongProof', 'its answer is not a proof');
  const mac = bytesOf(parsed.output.proof);
  const message = encoder.encode(proofMessage({ role, nonce, authority }));
  const isProven = mac !== undefined && (await crypto.subtle.verify('HMAC', key, mac, message));
  if (!isProven || parsed.output.use !== 'token') refuse('wrongProof', 'another program serves this address');
}

/** Text of an answer that may be without end. */
async function readShort(response: Response): Promise<string> {
  const reader = response.body?.getReader();
  const decoder = new TextDecoder();
  let text = '';
  let bytes = 0;
  for (;;) {
    const { value, done } = (await reader?.read()) ?? { value: undefined, done: true };
    if (done || value === undefined) return text + decoder.decode();
    bytes += value.byteLength;
    if (bytes > maxAnswerBytes) {
      await reader?.cancel();
      return '';
    }
    text += decoder.decode(value, { stream: true });
  }
}

function codeOf(error: unknown): string {
  const cause = error instanceof Error ? (error.cause ?? error) : error;
  if (cause instanceof Error) return 'code' in cause ? String(cause.code) : cause.message;
  return String(cause);
}

const base64Url = (bytes: Uint8Array): string =>
  btoa(String.fromCharCode(...bytes))
    .replaceAll('+', '-')
    .replaceAll('/', '_')
    .replaceAll('=', '');

function bytesOf(text: string): Uint8Array<ArrayBuffer> | undefined {
  try {
    return Uint8Array.from(atob(text.replaceAll('-', '+').replaceAll('_', '/')), (char) => char.charCodeAt(0));
  } catch {
    // Not base64: then it is no MAC either.
    return undefined;
  }
}
