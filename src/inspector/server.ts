import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { bearerToken, isForeign, loopbackHosts, sameSecret, securityHeaders, staticAnswers } from '../http/index.ts';
import { limits } from './limits.ts';
import type { Outlet } from './outlet.ts';

export interface InspectorServer {
  /** Resolves with the origin when the server listens. Rejects if the port cannot be used. */
  readonly origin: Promise<string>;
  close(): Promise<void>;
}

export interface InspectorServerOptions {
  readonly outlet: Outlet;
  /** Directory of the built page. */
  readonly directory: string;
  readonly token: string;
  readonly port: number;
}

/** Refusal of a request. */
class Refusal extends Error {
  readonly status: number;
  readonly code: string;

  constructor(status: number, code: string, message: string) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

const isOwnHost = loopbackHosts();
/** Limit of simultaneous connections, above the number that a browser opens for all its pages. */
const maxConnections = 64;

/** Serves the page and answers its requests on loopback. Never prevents the program from ending. */
export function serveInspector({ outlet, directory, token, port }: InspectorServerOptions): InspectorServer {
  /** Loaded on the first request for a file. */
  let files: ReturnType<typeof staticAnswers> | undefined;

  async function respond(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { host = '', origin } = request.headers;
    const site = request.headers['sec-fetch-site'];
    const path = (request.url ?? '/').split('?', 1)[0] ?? '/';
    if (!isOwnHost(host))
      throw new Refusal(
        403,
        'forbiddenHost',
        'The Host header does not name this machine: open the address that the program printed.',
      );
    if (path === '/ask') {
      if (isForeign(host, typeof site === 'string' ? site : undefined, origin))
        throw new Refusal(403, 'forbiddenOrigin', 'The request comes from a page of another origin.');
      return answer(request, response);
    }
    if (request.method !== 'GET' && request.method !== 'HEAD')
      throw new Refusal(405, 'methodNotAllowed', 'Use GET to read the page.');
    files ??= staticAnswers(directory);
    const file = files.get(path);
    if (!file) throw new Refusal(404, 'notFound', 'The page does not have this file.');
    const { status, headers, body } = file({ header: (name) => textHeader(request, name) });
    for (const [name, value] of headers) response.setHeader(name, value);
    response.writeHead(status).end(request.method === 'HEAD' ? undefined : body);
  }

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (request.method !== 'POST') throw new Refusal(405, 'methodNotAllowed', 'Use POST to send a request.');
    const given = bearerToken(request.headers.authorization);
    if (given === undefined || !sameSecret(given, token))
      throw new Refusal(
        401,
        'unauthorized',
        'The token is missing or wrong: open the address that the program printed.',
      );
    const question = await readQuestion(request);
    const left = new AbortController();
    response.once('close', () => left.abort());
    const answered = await outlet.ask(question, left.signal).catch((error: unknown) => {
      throw error instanceof TypeError ? new Refusal(400, 'invalidQuestion', error.message) : error;
    });
    send(response, 200, answered);
  }

  const server = createServer((request, response) => {
    respond(request, response).catch((error: unknown) => {
      const { status, code, message } =
        error instanceof Refusal
          ? error
          : new Refusal(500, 'internal', 'The inspector has an internal error: reload the page.');
      if (response.headersSent) response.destroy();
      else send(response, status, { error: { code, message } });
    });
  });
  server.maxConnections = maxConnections;
  server.on('connection', (socket) => socket.unref());
  const origin = new Promise<string>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, '127.0.0.1', () => resolve(`http://127.0.0.1:${(server.address() as AddressInfo).port}`));
  });
  // A taken port must not end a program that never reads the address.
  origin.catch(() => {});
  server.unref();
  return {
    origin,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

const textHeader = (request: IncomingMessage, name: string): string | undefined => {
  const value = request.headers[name];
  return typeof value === 'string' ? value : undefined;
};

function send(response: ServerResponse, status: number, body: unknown): void {
  for (const [name, value] of securityHeaders) response.setHeader(name, value);
  response.writeHead(status, { 'content-type': 'application/json', 'cache-control': 'no-store' });
  response.end(JSON.stringify(body));
}

async function readQuestion(request: IncomingMessage): Promise<unknown> {
  const parts: Buffer[] = [];
  let bytes = 0;
  for await (const part of request as AsyncIterable<Buffer>) {
    bytes += part.byteLength;
    if (bytes > limits.questionBytes) throw new Refusal(413, 'questionTooLarge', 'The request is too large.');
    parts.push(part);
  }
  try {
    return JSON.parse(Buffer.concat(parts).toString('utf8'));
  } catch {
    throw new Refusal(400, 'invalidQuestion', 'The request is not valid JSON.');
  }
}
