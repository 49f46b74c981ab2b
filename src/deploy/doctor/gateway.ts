import { request as httpRequest, type IncomingMessage, type RequestOptions } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { isIP } from 'node:net';
import { connect, type DetailedPeerCertificate } from 'node:tls';
import { messageOf } from '../../lib/index.ts';
import type { GatewayAddress } from './types.ts';

export const gatewayHere: GatewayAddress = { host: '127.0.0.1', httpPort: 80, httpsPort: 443, ca: [] };

export interface Question {
  readonly method: 'GET' | 'POST';
  readonly path: string;
  readonly isTls: boolean;
  readonly body?: string;
}
export interface GatewayAnswer {
  readonly status: number;
  readonly location: string | undefined;
}

/** Clients send no SNI for an address (RFC 6066, section 3). */
const serverNameOf = (publicHost: string): string => (isIP(publicHost) === 0 ? publicHost : '');
const hostHeaderOf = (publicHost: string): string => (isIP(publicHost) === 6 ? `[${publicHost}]` : publicHost);

/** Asks the gateway on this host as if it had been found by the public host. Another check reads its certificate. */
export function askGateway(
  { host, httpPort, httpsPort }: GatewayAddress,
  publicHost: string,
  { method, path, isTls, body }: Question,
  signal: AbortSignal,
): Promise<GatewayAnswer> {
  const headers = {
    host: hostHeaderOf(publicHost),
    'user-agent': 'oratorio-doctor',
    ...(method === 'POST' && { 'content-type': 'application/json', 'content-length': String((body ?? '').length) }),
  };
  const options: RequestOptions = {
    host,
    port: isTls ? httpsPort : httpPort,
    method,
    path,
    headers,
    signal,
    agent: false,
  };
  return new Promise((resolve, reject) => {
    const answered = (response: IncomingMessage): void => {
      resolve({ status: response.statusCode ?? 0, location: response.headers.location });
      response.destroy();
    };
    const asked = isTls
      ? httpsRequest({ ...options, servername: serverNameOf(publicHost), rejectUnauthorized: false }, answered)
      : httpRequest(options, answered);
    asked.on('error', reject);
    asked.end(body);
  });
}

export interface ShownCertificate {
  readonly certificate: DetailedPeerCertificate;
  /** Why clients would not trust it; null when they would. */
  readonly distrust: string | null;
}

/** The certificate that the gateway shows for the public host. */
export function certificateOf(
  { host, httpsPort, ca }: GatewayAddress,
  publicHost: string,
  signal: AbortSignal,
): Promise<ShownCertificate> {
  return new Promise((resolve, reject) => {
    const socket = connect({
      host,
      port: httpsPort,
      servername: serverNameOf(publicHost),
      rejectUnauthorized: false,
      ...(ca.length > 0 && { ca: [...ca] }),
      // The caller compares the name.
      checkServerIdentity: () => undefined,
    });
    const stop = (): void => void socket.destroy(new Error('stopped'));
    signal.addEventListener('abort', stop, { once: true });
    socket.on('close', () => signal.removeEventListener('abort', stop));
    socket.on('error', reject);
    socket.on('secureConnect', () => {
      const error: unknown = socket.authorizationError;
      resolve({
        certificate: socket.getPeerCertificate(true),
        distrust: socket.authorized ? null : messageOf(error),
      });
      socket.destroy();
    });
  });
}
