/**
 * The proof that a server holds a client's token, before the client sends it (docs/server-proof.md). Only strings, because the
 * page needs them, too: each side computes HMAC-SHA256 with its platform. A MAC is written in base64url without padding.
 */

/** Which server proves itself. The role is part of the MAC, so that an answer of one kind of server is worthless as another's. */
export type ProofRole = 'hub' | 'dashboard' | 'backend';

/** `GET <path>?nonce=…&key=…`, open to everybody. */
export const proofPaths: Readonly<Record<ProofRole, string>> = {
  hub: '/v1/proof',
  dashboard: '/DashBoard/api/proof',
  backend: '/api/v1/proof',
};

/** `POST` with `ExchangeInput`: a token of an earlier start for the token of this one. */
export const exchangePath = '/DashBoard/api/exchange';

/** A nonce in base64url: 16 to 64 random bytes. */
export const nonceShape = /^[A-Za-z0-9_-]{22,86}$/;
/** A key id in base64url: 16 bytes. */
export const keyIdShape = /^[A-Za-z0-9_-]{22}$/;

/** A shorter token can be guessed from one MAC, so a server proves nothing with it. Tokens made here have 43 characters. */
export const shortestProofToken = 16;

/** Answer of the proof route. */
export interface ProofAnswer {
  /** MAC of `proofMessage`. */
  readonly proof: string;
  /** `exchange`: the token is that of an earlier start, and only good for `exchangePath`. */
  readonly use: 'token' | 'exchange';
  /** Names this process in the MAC of an exchange, so that the request is worthless at the next one. */
  readonly instance: string;
}

/** The MAC of this, cut to `keyIdLength` characters, names a token without revealing it. */
export const keyIdMessage = 'oratorio-key';
export const keyIdLength = 22;

export interface ProofClaim {
  readonly role: ProofRole;
  readonly nonce: string;
  /** `host[:port]` that the client believes to speak to: a relayed answer names another one. */
  readonly authority: string;
}

/** Message that a server signs with the token. */
export const proofMessage = ({ role, nonce, authority }: ProofClaim): string =>
  ['oratorio-proof', role, nonce, authority].join('\n');

/** Message that a page signs with the token of an earlier start to get that of this one. */
export const exchangeMessage = ({ role, nonce, authority, instance }: ProofClaim & { readonly instance: string }) =>
  ['oratorio-exchange', role, nonce, authority, instance].join('\n');

/** `host[:port]` of a URL as clients send it in `Host`. */
export const authorityOf = (url: string | URL): string => new URL(url).host.toLowerCase();
