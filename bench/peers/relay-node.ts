/** A bare relay on `node:http`, bytes through. BENCH_UPSTREAM is the address behind it. */
import { Agent, createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { announce } from './peer.ts';

const { hostname, port } = new URL(process.env['BENCH_UPSTREAM'] ?? '');
const agent = new Agent({ keepAlive: true });
const server = createServer((incoming, outgoing) => {
  const length = incoming.headers['content-length'];
  const headers = { 'content-type': 'application/json', ...(length !== undefined && { 'content-length': length }) };
  const behind = request({ agent, hostname, port, method: incoming.method, path: incoming.url, headers }, (answer) => {
    outgoing.writeHead(answer.statusCode ?? 502, { 'content-type': answer.headers['content-type'] ?? '' });
    answer.pipe(outgoing);
  });
  behind.on('error', (error) => outgoing.destroy(error));
  outgoing.on('close', () => outgoing.writableFinished || behind.destroy());
  incoming.pipe(behind);
});
server.listen(0, '127.0.0.1', () => announce({ port: (server.address() as AddressInfo).port }));
