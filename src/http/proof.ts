/** Proves that a server holds a token without sending it (docs/server-proof.md). */
import { createHmac, randomBytes } from 'node:crypto';
import {
  exchangeMessage,
  keyIdLength,
  keyIdMessage,
  keyIdShape,
  nonceShape,
  type ProofAnswer,
  type ProofClaim,
  type ProofRole,
  proofMessage,
  shortestProofToken,
} from '../protocol/index.ts';
import { sameSecret } from './auth.ts';
import { HttpError } from './http-error.ts';
import { json } from './reply.ts';
import type { Reply, RequestContext } from './types.ts';

const mac = (token: string, message: string): string => createHmac('sha256', token).update(message).digest('base64url');

/** Names a token without revealing it. */
export const keyIdOf = (token: string): string => mac(token, keyIdMessage).slice(0, keyIdLength);

/** MAC with which the holder of `token` proves itself. */
export const proofOf = (token: string, claim: ProofClaim): string => mac(token, proofMessage(claim));

/** A token that a server may prove to hold. */
export interface ProvableToken {
  readonly token: string;
  readonly use: ProofAnswer['use'];
}

export interface ProverOptions {
  readonly role: ProofRole;
  /** Finds a token by its key id. */
  readonly find: (keyId: string) => ProvableToken | undefined;
  /** Whether clients that believe to speak to `host[:port]` speak to this process: see `ownAuthorities`. */
  readonly isOwn: (authority: string) => boolean;
}

/** A client's claim to hold a token of an earlier start. */
export interface ExchangeClaim {
  readonly key: string;
  readonly nonce: string;
  readonly proof: string;
}

export interface Prover {
  /** Handler of the proof route. Throws HttpError 400 for a malformed query, 401 for an unknown key, 403 for another authority. */
  readonly handler: (context: Pick<RequestContext, 'query' | 'header'>) => Reply;
  /** Accepts a client that proves to hold an exchangeable token. Throws HttpError 400, 401, 403. */
  readonly requireExchange: (claim: ExchangeClaim, host: string | undefined) => void;
}

const noStore = [['cache-control', 'no-store']] as const;

/** The server's side of the proof. It stores nothing per request and computes two MACs at most. */
export function createProver({ role, find, isOwn }: ProverOptions): Prover {
  const instance = randomBytes(16).toString('base64url');

  function resolve(
    key: string,
    nonce: string,
    host: string | undefined,
  ): ProvableToken & { readonly claim: ProofClaim } {
    if (!nonceShape.test(nonce)) {
      throw new HttpError(400, 'invalidRequest', 'nonce must be 16 to 64 random bytes in base64url.', null);
    }
    if (!keyIdShape.test(key)) throw new HttpError(400, 'invalidRequest', 'key must be the id of a token.', null);
    const authority = (host ?? '').toLowerCase();
    if (!isOwn(authority)) {
      throw new HttpError(
        403,
        'hostNotAllowed',
        'This server does not listen at the address in the Host header.',
        null,
      );
    }
    const found = find(key);
    if (found === undefined || found.token.length < shortestProofToken) {
      throw new HttpError(401, 'unauthorized', 'The key is not that of a token of this server.', null);
    }
    return { ...found, claim: { role, nonce, authority } };
  }

  return {
    handler(context) {
      const { query } = context;
      const { token, use, claim } = resolve(query.get('key') ?? '', query.get('nonce') ?? '', context.header('host'));
      return json(200, { proof: proofOf(token, claim), use, instance } satisfies ProofAnswer, noStore);
    },
    requireExchange({ key, nonce, proof }, host) {
      const { token, use, claim } = resolve(key, nonce, host);
      const isProven = sameSecret(proof, mac(token, exchangeMessage({ ...claim, instance })));
      if (use !== 'exchange' || !isProven) {
        throw new HttpError(401, 'unauthorized', 'The proof is not that of a token of an earlier start.', null);
      }
    },
  };
}

export interface AuthorityOptions {
  /** Where the server listens, once it does. */
  readonly bound: () => { readonly host: string; readonly port: number } | undefined;
  /** Further host names, without a port, that the user has listed. */
  readonly names?: readonly string[];
  /** Further authorities, e.g. of a port that a container publishes. */
  readonly published?: readonly string[];
}

const authorityShape = /^(\[[0-9a-f:.]+\]|[a-z0-9_.-]+)(?::(\d{1,5}))?$/;
const httpPort = 80;

/**
 * Decides whether `host[:port]` can only lead to this server. The port alone is not enough: another user may listen at the same
 * port of another loopback address, or of `localhost` in the other address family. So a server on one address answers for this
 * address, and one on all addresses for each of them.
 */
export function ownAuthorities({
  bound,
  names = [],
  published = [],
}: AuthorityOptions): (authority: string) => boolean {
  const listed = new Set(names.map((name) => name.trim().toLowerCase().replace(/\.$/, '')));
  const whole = new Set(published.map((authority) => authority.trim().toLowerCase()));
  return (authority) => {
    if (whole.has(authority)) return true;
    const [, name, port] = authorityShape.exec(authority) ?? [];
    const at = bound();
    if (name === undefined || at === undefined) return false;
    // A proxy on the default port of HTTP belongs to the administrator.
    if (listed.has(name)) return port === undefined || Number(port) === at.port;
    if (Number(port ?? httpPort) !== at.port) return false;
    const host = at.host.toLowerCase();
    if (host === '0.0.0.0') return isIpv4(name);
    if (host === '::' || host === '[::]') return isIpv4(name) || name.startsWith('[') || name === 'localhost';
    return name === host || name === `[${host}]`;
  };
}

const isIpv4 = (name: string): boolean => /^(?:(?:25[0-5]|2[0-4]\d|1?\d?\d)(?:\.|$)){4}$/.test(name);

/** Authorities under which the environment says that this process is published, e.g. by a container: `ORATORIO_PUBLISHED_AS`. */
export const publishedAs = (env: Readonly<Record<string, string | undefined>>): readonly string[] =>
  (env['ORATORIO_PUBLISHED_AS'] ?? '').split(',').filter((authority) => authority.trim() !== '');
