/** The limit of a route on uWebSockets.js: fixed bytes, no host check, no auth, no schema. BENCH_BODY is the answer. */
import { App, us_socket_local_port } from 'uWebSockets.js';
import { announce } from './peer.ts';

const body = process.env['BENCH_BODY'] ?? '{}';
const app = App();
app.get('/*', (res) => {
  res.writeHeader('content-type', 'application/json').end(body);
});
app.post('/*', (res) => {
  let gone = false;
  res.onAborted(() => {
    gone = true;
  });
  res.onData((_chunk, last) => {
    if (last && !gone) res.cork(() => res.writeHeader('content-type', 'application/json').end(body));
  });
});
app.listen('127.0.0.1', 0, (token) => {
  if (token === false) throw new Error('cannot listen');
  announce({ port: us_socket_local_port(token as never) });
});
