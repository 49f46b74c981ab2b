/**
 * A relay written by hand for the same correctness: a `node:http` server that reads the request as JSON, asks with the
 * official client, and gives every chunk on as JSON of its own. BENCH_UPSTREAM is the address behind it.
 */
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import OpenAI from 'openai';
import type { ChatCompletionCreateParams } from 'openai/resources';
import { announce } from './peer.ts';

const client = new OpenAI({ apiKey: 'bench', baseURL: `${process.env['BENCH_UPSTREAM']}/v1`, maxRetries: 0 });

async function answer(text: string, response: ServerResponse): Promise<void> {
  const question = JSON.parse(text) as ChatCompletionCreateParams;
  const gone = new AbortController();
  response.on('close', () => gone.abort());
  if (question.stream !== true) {
    const whole = await client.chat.completions.create(question, { signal: gone.signal });
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(whole));
    return;
  }
  const stream = await client.chat.completions.create(question, { signal: gone.signal });
  response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' });
  for await (const chunk of stream) response.write(`data: ${JSON.stringify(chunk)}\n\n`);
  response.end('data: [DONE]\n\n');
}

const server = createServer((request, response) => {
  let text = '';
  request.setEncoding('utf8');
  request.on('data', (piece: string) => {
    text += piece;
  });
  request.on('end', () => {
    answer(text, response).catch((error: unknown) => {
      console.error(error);
      response.destroy();
    });
  });
});
server.listen(0, '127.0.0.1', () => announce({ port: (server.address() as AddressInfo).port }));
