/**
 * The limit of a relay on Node: uWebSockets.js in front, undici's `dispatch` behind, bytes through as they come.
 * Reads nothing, checks nothing, knows no session. BENCH_UPSTREAM is the address behind it.
 */
import { App, us_socket_local_port } from 'uWebSockets.js';
import { Pool } from 'undici';
import { announce } from './peer.ts';

const pool = new Pool(process.env.BENCH_UPSTREAM, { connections: 1024, pipelining: 1 });
const headers = ['content-type', 'application/json'];

/** Takes the answer of the upstream in, and hands it on. */
class Through {
  constructor(res) {
    this.res = res;
    this.isGone = false;
    this.isStream = false;
    /** Pieces of an answer that is a document: its length goes before it. */
    this.pieces = [];
    res.onAborted(() => {
      this.isGone = true;
      this.controller?.abort(new Error('the client has gone'));
    });
  }

  onRequestStart(controller) {
    this.controller = controller;
  }

  onResponseStart(_controller, status, headers) {
    if (status !== 200) throw new Error(`the upstream says ${status}`);
    const type = headers['content-type'];
    this.isStream = type === 'text/event-stream';
    if (!this.isGone) this.res.cork(() => this.res.writeHeader('content-type', type));
  }

  onResponseData(_controller, chunk) {
    if (!this.isStream) this.pieces.push(chunk);
    else if (!this.isGone) this.res.cork(() => this.res.write(chunk));
  }

  onResponseEnd() {
    if (!this.isGone) this.res.cork(() => this.res.end(Buffer.concat(this.pieces)));
  }

  onResponseError(_controller, error) {
    if (this.isGone) return;
    console.error(error);
    process.exit(1);
  }
}

const app = App();
app.post('/*', (res, req) => {
  const path = req.getUrl();
  const through = new Through(res);
  let body = Buffer.alloc(0);
  res.onData((chunk, isLast) => {
    body = Buffer.concat([body, Buffer.from(chunk)]);
    if (isLast && !through.isGone) pool.dispatch({ method: 'POST', path, headers, body }, through);
  });
});
app.listen('127.0.0.1', 0, (token) => {
  if (token === false) throw new Error('cannot listen');
  announce({ port: us_socket_local_port(token) });
});
