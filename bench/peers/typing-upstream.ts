/**
 * An upstream that writes Markdown at the pace of a model: `typing-upstream.ts PIECES_PER_SECOND SECONDS`. Chat completions on
 * node:http, one piece a frame, and pieces that are late leave together.
 */
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { typedPieces } from '../typed-text.ts';
import { announce } from './peer.ts';

const [rate = 200, seconds = 10] = process.argv.slice(2).map(Number);
const head = '"id":"chatcmpl-typing","object":"chat.completion.chunk","created":1790000000,"model":"typing"';
const frame = (delta: unknown, finish: string | null = null): string =>
  `data: {${head},"choices":[{"index":0,"delta":${JSON.stringify(delta)},"finish_reason":${JSON.stringify(finish)}}]}\n\n`;

function type(response: ServerResponse): void {
  const pieces = typedPieces(rate * seconds);
  const from = performance.now();
  let next = 0;
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  const timer = setInterval(() => {
    const due = Math.min(pieces.length, Math.floor(((performance.now() - from) / 1_000) * rate) + 1);
    const frames = pieces.slice(next, due).map((content) => frame({ content }));
    next = due;
    if (frames.length > 0) response.write(frames.join(''));
    if (next < pieces.length) return;
    clearInterval(timer);
    response.end(`${frame({}, 'stop')}data: [DONE]\n\n`);
  }, 5);
  response.on('close', () => clearInterval(timer));
}

const server = createServer((request, response) => {
  request.resume();
  if (request.method === 'POST') type(response);
  else response.writeHead(200, { 'content-type': 'application/json' }).end('{"object":"list","data":[]}');
});
server.listen(0, '127.0.0.1', () => announce({ port: (server.address() as AddressInfo).port }));
