/**
 * One small HTTP server with two bodies: uWebSockets.js where its binary loads, `node:http` with `ws` elsewhere. Routes,
 * auth, bodies, event streams, WebSockets, static files, and the order in which a request is judged (design §4). Called by
 * every room that serves something, and by rooms that ask servers elsewhere through a proxy (`outgoing/`). Never here: anything of the domain, its error shapes included (`ServerOptions.errorBody`).
 *
 * Requests refused before they are routed. Ambiguous framing (RFC 9112, section 6.3), two Host headers and more than 16 KiB of
 * request line and headers are answered 400 or 431 with this server's error body, and the connection is closed. `node:http`
 * also words the refusals of its parser (400, 408, 431). uWebSockets.js answers in C++, before any code of ours, with an HTML page
 * that cannot be changed: 400 (malformed, no Host, Content-Length together with Transfer-Encoding), 431 (over 64 KiB, or over
 * 100 headers) and 505 (HTTP/1.0 or an absolute-form target). A server whose clients may be proxies that speak HTTP/1.0
 * prefers `node` (`createServer`), which answers both. uWebSockets.js also closes a connection that sends its next request
 * while an asynchronous handler still works on the last, and an idle one after 8 to 12 seconds.
 */
export {
  admitOwnerOrKey,
  bearer,
  bearerToken,
  type OwnerAccess,
  ownerOrKey,
  sameSecret,
  secretTest,
} from './auth.ts';
export { createServer, httpLibrary } from './create-server.ts';
export { type HostRules, isForeign, knownHosts, loopbackHosts } from './hosts.ts';
export { type Header, HttpError } from './http-error.ts';
export { throughProxy } from './outgoing/agent.ts';
export { outgoingFetch } from './outgoing/fetch.ts';
export { type HttpProxy, ProxyError, proxyFor } from './outgoing/proxy.ts';
export { peerUidOf } from './peer-owner.ts';
export {
  type AuthorityOptions,
  createProver,
  type ExchangeClaim,
  keyIdOf,
  ownAuthorities,
  type ProvableToken,
  type Prover,
  proofOf,
  publishedAs,
} from './proof.ts';
export { bytes, empty, json, jsonBytes, pipe, sse, stream, text } from './reply.ts';
export { closeCodes } from './sockets.ts';
export { securityHeaders, staticAnswers, staticDocument, staticFiles } from './static-files.ts';
export { offeredSubprotocols } from './subprotocols.ts';
export type * from './types.ts';
