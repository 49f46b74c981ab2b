/** A bare `node:http` server with fixed bytes. BENCH_BODY is the answer; a body is read to its end first. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { announce } from './peer.ts';

const body = Buffer.from(process.env['BENCH_BODY'] ?? '{}');
const headers = { 'content-type': 'application/json', 'content-length': body.byteLength };
const server = createServer({ keepAliveTimeout: 10_000 }, (request, response) => {
  const answer = (): void => {
    response.writeHead(200, headers);
    response.end(body);
  };
  if (request.method === 'GET') answer();
  else request.resume().once('end', answer);
});
server.listen(0, '127.0.0.1', () => announce({ port: (server.address() as AddressInfo).port }));
