/**
 * One small HTTP server with two bodies: uWebSockets.js where its binary loads, `node:http` with `ws` elsewhere. Routes,
 * auth, bodies, event streams, WebSockets, static files, and the order in which a request is judged (DESIGN §4). Called by
 * every room that serves something. Never here: anything of the domain, its error shapes included (`ServerOptions.errorBody`).
 *
 * What a request that never becomes one gets. `node:http`: our own error body with 400, 408 or 431. uWebSockets.js
 * answers in C++, before any code of ours, with an HTML page that cannot be changed: 400 (malformed, no Host), 431 (header
 * block over 16 KiB, or over 100 headers), 505 (HTTP/1.0 or an absolute-form target). It also closes a connection that
 * sends its next request while an asynchronous handler still works on the last, and an idle one after 8 to 12 seconds.
 */
export { bearer, bearerToken, sameSecret } from './auth.ts';
export { createServer } from './create-server.ts';
export { type HostRules, isForeign, knownHosts, loopbackHosts } from './hosts.ts';
export { type Header, HttpError } from './http-error.ts';
export { bytes, empty, json, jsonBytes, sse, stream, text } from './reply.ts';
export { securityHeaders, staticFiles } from './static-files.ts';
export type * from './types.ts';
