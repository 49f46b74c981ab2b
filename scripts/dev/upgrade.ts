import { request as forward, type IncomingHttpHeaders, type IncomingMessage, STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';

export interface UpgradeTarget {
  /** For example `http://127.0.0.1:40123`. */
  readonly origin: string;
  /** Headers of the request with the token of the server. */
  readonly headers: IncomingHttpHeaders;
}

/** Passes a WebSocket on: the handshake with other headers, then every byte both ways. The end of one side ends the other. */
export function passUpgrade(request: IncomingMessage, socket: Duplex, head: Buffer, target: UpgradeTarget): void {
  const sent = forward(`${target.origin}${request.url}`, { headers: target.headers, agent: false });
  socket.on('error', () => sent.destroy());
  socket.on('close', () => sent.destroy());
  sent.on('upgrade', (answer, inner, innerHead) => {
    socket.write(headOf(answer));
    socket.write(innerHead);
    inner.write(head);
    inner.on('error', () => socket.destroy());
    inner.on('close', () => socket.destroy());
    socket.on('close', () => inner.destroy());
    inner.pipe(socket).pipe(inner);
  });
  sent.on('response', (answer) => {
    answer.resume();
    refuseUpgrade(socket, answer.statusCode ?? 502);
  });
  sent.on('error', () => refuseUpgrade(socket, 503));
  sent.end();
}

/** Answers a handshake without a WebSocket. */
export function refuseUpgrade(socket: Duplex, status: number): void {
  if (!socket.writable) return;
  socket.end(`HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}\r\nconnection: close\r\ncontent-length: 0\r\n\r\n`);
}

function headOf({ rawHeaders }: IncomingMessage): string {
  const lines = rawHeaders.flatMap((name, index) =>
    index % 2 === 0 ? [`${name}: ${rawHeaders[index + 1] ?? ''}`] : [],
  );
  return ['HTTP/1.1 101 Switching Protocols', ...lines, '', ''].join('\r\n');
}
