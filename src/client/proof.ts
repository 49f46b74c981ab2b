/** The client's side of the server proof (docs/server-proof.md). */
import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import * as v from 'valibot';
import { askLocal } from '../lib/index.ts';
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
  /** Unix socket of a tunnel to that address. */
  readonly socketPath?: string | undefined;
  readonly signal?: AbortSignal | undefined;
  /** Milliseconds for the whole exchange. */
  readonly timeoutMs?: number | undefined;
}

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
  const { role, token, socketPath, signal, timeoutMs = defaults.client.statusTimeoutMs } = request;
  const url = new URL(`${request.url.replace(/(?<!\/)\/+$/, '')}${proofPaths[role]}`);
  if (url.protocol === 'https:') return;
  const authority = authorityOf(url);
  const refuse = (reason: ServerNotProvenError['reason'], why: string, cause?: unknown): never => {
    throw new ServerNotProvenError(reason, `The server at ${authority} did not prove itself: ${why}.`, { cause });
  };
  if (token.length < shortestProofToken)
    refuse('weakToken', `the token is shorter than ${shortestProofToken} characters`);
  signal?.throwIfAborted();
  const macOf = (message: string) => createHmac('sha256', token).update(message).digest();
  const nonce = randomBytes(nonceBytes).toString('base64url');
  const keyId = macOf(keyIdMessage).toString('base64url');
  url.searchParams.set('nonce', nonce);
  url.searchParams.set('key', keyId.slice(0, keyIdLength));
  const timeout = AbortSignal.timeout(timeoutMs);
  const ending = signal ? AbortSignal.any([signal, timeout]) : timeout;
  const answer = await askLocal(url, { signal: ending, socketPath })
    .then(async (head) => ({ status: head.status, text: await head.text(maxAnswerBytes) }))
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
  const given = Buffer.from(parsed.output.proof, 'base64url');
  const wanted = macOf(proofMessage({ role, nonce, authority }));
  const isProven = given.length === wanted.length && timingSafeEqual(given, wanted);
  if (!isProven || parsed.output.use !== 'token') refuse('wrongProof', 'another program serves this address');
}

function codeOf(error: unknown): string {
  const cause = error instanceof Error ? (error.cause ?? error) : error;
  if (cause instanceof Error) return 'code' in cause ? String(cause.code) : cause.message;
  return String(cause);
}
