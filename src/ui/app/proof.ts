/**
 * The page's side of the server proof (docs/server-proof.md). A pure implementation of HMAC, because browsers offer theirs to
 * secure contexts only, and a dashboard on another host of the local network is not one.
 */
import { hmac } from '@noble/hashes/hmac.js';
import { sha256 } from '@noble/hashes/sha2.js';
import {
  exchangeMessage,
  exchangePath,
  keyIdLength,
  keyIdMessage,
  type ProofAnswer,
  type ProofClaim,
  type ProofRole,
  proofMessage,
  proofPaths,
  shortestProofToken,
} from '../../protocol/browser.ts';
import { ApiError } from './api.ts';

export interface Trust {
  /**
   * Resolves with the token of this tab as soon as the server has proved to hold it, or with null when the tab has none. Each
   * call asks again, because the server may have been replaced since the last one; concurrent calls share one request.
   *
   * Rejects with `ApiError`: `unreachable`, `foreignServer`, `otherAddress`, or status 401 for a token that the server does not
   * know.
   */
  token(): Promise<string | null>;
}

export interface TrustOptions {
  readonly role: ProofRole;
  /** The token of this tab. */
  readonly held: () => string | null;
  /** Called with the token that replaces the token of an earlier start. */
  readonly onRenewed: (token: string) => void;
  /** Called when another program serves this address. */
  readonly onForeign: (error: ApiError) => void;
}

const nonceBytes = 32;
const answerMs = 10_000;

export function createTrust({ role, held, onRenewed, onForeign }: TrustOptions): Trust {
  let underWay: { readonly held: string; readonly proof: Promise<string> } | null = null;

  async function prove(token: string): Promise<string> {
    try {
      const claim: ProofClaim = { role, nonce: makeNonce(), authority: location.host.toLowerCase() };
      const { use, instance } = await askForProof(token, claim);
      if (use === 'token') return token;
      const renewed = await exchange(token, claim, instance);
      onRenewed(renewed);
      return renewed;
    } catch (error) {
      if (isForeign(error)) onForeign(error);
      throw error;
    }
  }

  return {
    async token() {
      const token = held();
      // The certificate proves a server of HTTPS.
      if (token === null || location.protocol === 'https:') return token;
      if (underWay?.held === token) return underWay.proof;
      const mine = { held: token, proof: prove(token) };
      underWay = mine;
      try {
        return await mine.proof;
      } finally {
        if (underWay === mine) underWay = null;
      }
    },
  };
}

/** Whether a server failed its proof, so that it got no token. */
export const isForeign = (error: unknown): error is ApiError =>
  error instanceof ApiError && (error.code === 'foreignServer' || error.code === 'otherAddress');

/** @throws ApiError unless the server holds `token` and listens at the address of this page */
async function askForProof(token: string, claim: ProofClaim): Promise<ProofAnswer> {
  if (token.length < shortestProofToken) {
    throw new ApiError(
      401,
      'weakToken',
      `A token of less than ${shortestProofToken} characters is sent over HTTPS only.`,
    );
  }
  const query = new URLSearchParams({ nonce: claim.nonce, key: keyIdOf(token) });
  const response = await ask(`${proofPaths[claim.role]}?${query}`);
  if (response.status === 401) throw new ApiError(401, 'unauthorized', 'The server does not know this token.');
  if (response.status === 403) {
    throw new ApiError(
      0,
      'otherAddress',
      `The server does not listen at ${claim.authority}, so it cannot prove itself there. Open the address that the terminal prints; through a tunnel use the same port and 127.0.0.1.`,
    );
  }
  const answer = (await response.json().catch(() => null)) as Partial<ProofAnswer> | null;
  const { proof, use, instance } = answer ?? {};
  const isProven = response.ok && typeof proof === 'string' && isSame(proof, mac(token, proofMessage(claim)));
  if (!isProven || typeof instance !== 'string' || (use !== 'token' && use !== 'exchange')) {
    throw new ApiError(
      0,
      'foreignServer',
      'This address is served by another program, or by another version. No token was sent to it.',
    );
  }
  return { proof, use, instance };
}

/** Proves to hold a token of an earlier start. Resolves with that of this one. */
async function exchange(token: string, { role, authority }: ProofClaim, instance: string): Promise<string> {
  const nonce = makeNonce();
  const proof = mac(token, exchangeMessage({ role, nonce, authority, instance }));
  const response = await ask(exchangePath, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ key: keyIdOf(token), nonce, proof }),
  });
  const answer = (await response.json().catch(() => null)) as { readonly token?: unknown } | null;
  if (!response.ok || typeof answer?.token !== 'string') {
    throw new ApiError(401, 'unauthorized', 'The token of this tab cannot be renewed.');
  }
  return answer.token;
}

/** A request without a token. */
function ask(path: string, init: RequestInit = {}): Promise<Response> {
  const options = { cache: 'no-store', redirect: 'error', signal: AbortSignal.timeout(answerMs) } as const;
  return fetch(path, { ...init, ...options }).catch(() => {
    throw new ApiError(0, 'unreachable', 'The server cannot be reached.');
  });
}

const encoder = new TextEncoder();

const mac = (token: string, message: string): string =>
  base64Url(hmac(sha256, encoder.encode(token), encoder.encode(message)));

let lastKey = { token: '', id: '' };

/** Key id of a token, which is computed once for the token of the tab. */
function keyIdOf(token: string): string {
  if (lastKey.token !== token) lastKey = { token, id: mac(token, keyIdMessage).slice(0, keyIdLength) };
  return lastKey.id;
}

const makeNonce = (): string => base64Url(crypto.getRandomValues(new Uint8Array(nonceBytes)));

const base64Url = (bytes: Uint8Array): string =>
  btoa(String.fromCharCode(...bytes))
    .replaceAll('+', '-')
    .replaceAll('/', '_')
    .replaceAll('=', '');

/** Compares in a time that does not depend on where the texts differ. */
function isSame(given: string, expected: string): boolean {
  if (given.length !== expected.length) return false;
  let difference = 0;
  for (let at = 0; at < expected.length; at += 1) difference |= given.charCodeAt(at) ^ expected.charCodeAt(at);
  return difference === 0;
}
