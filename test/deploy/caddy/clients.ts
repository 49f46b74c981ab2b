/** Clients that send requests without normalising them: bytes by a socket, and HTTP/2 by Node's. */
import type { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { type ClientHttp2Session, connect as connectHttp2, type OutgoingHttpHeaders } from 'node:http2';
import { connect as connectTcp, isIP, type Socket } from 'node:net';
import { connect as connectTls, createSecureContext, type SecureContext, type TLSSocket } from 'node:tls';

export interface Target {
  readonly port: number;
  readonly tls?: {
    readonly ca: string;
    /** Name that the certificate must have. */
    readonly identity: string;
    /** Named in the handshake; empty: none is. */
    readonly serverName: string;
    readonly alpn?: readonly string[];
    readonly version?: 'TLSv1.1' | 'TLSv1.2' | 'TLSv1.3';
  };
}

export interface Answer {
  /** `closed`: the other side ended it without an answer. */
  readonly status: number | 'closed';
  readonly location: string | undefined;
  readonly text: string;
}

const closed: Answer = { status: 'closed', location: undefined, text: '' };

/** By CA, for connections without further settings: making one takes as long as the handshake. */
const contexts = new Map<string, SecureContext>();

function trusting(ca: string): SecureContext {
  const context = contexts.get(ca) ?? createSecureContext({ ca });
  contexts.set(ca, context);
  return context;
}

function open({ port, tls }: Target): Socket {
  if (!tls) return connectTcp({ host: '127.0.0.1', port });
  const socket: TLSSocket = connectTls({
    host: '127.0.0.1',
    port,
    servername: tls.serverName,
    checkServerIdentity: () => certifies(socket.getPeerX509Certificate(), tls.identity),
    ...(tls.alpn ? { ALPNProtocols: [...tls.alpn] } : {}),
    ...(tls.version
      ? { ca: tls.ca, minVersion: tls.version, maxVersion: tls.version, ciphers: 'DEFAULT@SECLEVEL=0' }
      : { secureContext: trusting(tls.ca) }),
  });
  // Node describes the whole chain for the check of the name, which takes longer than the handshake; the check reads none of it.
  return Object.assign(socket, { getPeerCertificate: () => ({}) });
}

/** Node compares the spellings of IPv6 addresses. */
function certifies(certificate: X509Certificate | undefined, identity: string): Error | undefined {
  const found = isIP(identity) === 0 ? certificate?.checkHost(identity) : certificate?.checkIP(identity);
  return found === undefined
    ? Object.assign(new Error(`no certificate of ${identity}`), { code: 'CERT_OF_ANOTHER' })
    : undefined;
}

/** Sends `bytes` on a connection of its own, and waits for its end. */
export async function sendRaw(target: Target, bytes: string | readonly (string | Uint8Array)[]): Promise<Answer> {
  const socket = open(target);
  const chunks: Buffer[] = [];
  socket.on('data', (chunk: Buffer) => chunks.push(chunk));
  // The socket may be closed before all is sent; the response shows how.
  let fault: Error | undefined;
  socket.on('error', (error) => {
    fault = error;
  });
  for (const part of typeof bytes === 'string' ? [bytes] : bytes) socket.write(part);
  await new Promise((resolve) => socket.once('close', resolve));
  if (isDistrust(fault)) throw fault;
  return parse(Buffer.concat(chunks).toString('latin1'));
}

/** True for a foreign certificate, which is not a refusal by a gateway. */
const isDistrust = (fault: (Error & { code?: string }) | undefined): boolean =>
  /CERT|SELF_SIGNED|VERIFY/.test(fault?.code ?? '');

/** The first of the received responses. */
function parse(text: string): Answer {
  const status = /^HTTP\/1\.[01] (\d{3})/.exec(text)?.[1];
  if (status === undefined) return { ...closed, text };
  return { status: Number(status), location: /^location: (.*)\r$/im.exec(text)?.[1], text };
}

/** One request by HTTP/2 on a connection of its own. */
export async function sendHttp2(
  target: Target,
  headers: OutgoingHttpHeaders,
  body: Uint8Array | null,
): Promise<Answer> {
  const socket = open({ ...target, ...(target.tls ? { tls: { ...target.tls, alpn: ['h2'] } } : {}) }) as TLSSocket;
  let session: ClientHttp2Session | undefined;
  try {
    await once(socket, 'secureConnect');
    session = connectHttp2('https://gateway.invalid', { createConnection: () => socket });
    session.on('error', () => {});
    return await ask(session, headers, body);
  } catch (error) {
    if (isDistrust(error as Error)) throw error;
    return closed;
  } finally {
    session?.destroy();
    socket.destroy();
  }
}

async function ask(
  session: ClientHttp2Session,
  headers: OutgoingHttpHeaders,
  body: Uint8Array | null,
): Promise<Answer> {
  const stream = session.request(headers, { endStream: body === null });
  let answer = closed;
  stream.on('response', (received) => {
    answer = { status: received[':status'] ?? 'closed', location: received.location, text: '' };
  });
  stream.on('error', () => {});
  stream.resume();
  if (body !== null) stream.end(body);
  await new Promise((resolve) => stream.once('close', resolve));
  return answer;
}
