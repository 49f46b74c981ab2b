/**
 * Serves a page of a server that `npm run dev` restarts, at an address and with a token that outlive the restarts. Page files
 * come from `dist/ui`, with the content security policy of the product and one script more, which reloads the page after a
 * build. Everything else is forwarded, WebSockets too. The product contains nothing of this.
 */
import { randomBytes } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import {
  createServer,
  request as forward,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type OutgoingHttpHeaders,
  type Server,
  type ServerResponse,
} from 'node:http';
import type { AddressInfo } from 'node:net';
import { extname, join } from 'node:path';
import type { Duplex } from 'node:stream';
import { keyIdOf, proofOf, securityHeaders } from '../../src/http/index.ts';
import { type ProofAnswer, proofPaths } from '../../src/protocol/index.ts';
import { root } from '../toolchain.mjs';
import { passUpgrade, refuseUpgrade } from './upgrade.ts';

/** The server behind a proxy. */
export interface Upstream {
  /** For example `http://127.0.0.1:40123`. */
  readonly origin: string;
  readonly token: string;
}

export interface ProxyOptions {
  readonly role: 'hub' | 'dashboard';
  /** Path of the page, without a slash at its end; empty for `/`. */
  readonly page: string;
  /** Port on 127.0.0.1; 0 takes a free one. */
  readonly port: number;
  /** The running server; undefined while it restarts. */
  readonly upstream: () => Upstream | undefined;
}

const types: Readonly<Record<string, string>> = {
  '.css': 'text/css; charset=utf-8',
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.svg': 'image/svg+xml',
};

const scriptPath = '/.dev/reload.js';
const buildsPath = '/.dev/builds';

/** Runs in the page: the first build number is the page's own, another one means that files have changed. */
const reloadScript = `let own;
new EventSource('${buildsPath}').onmessage = ({ data }) => {
  own ??= data;
  if (own !== data) location.reload();
};
`;

const fileHeaders: OutgoingHttpHeaders = { ...Object.fromEntries(securityHeaders), 'cache-control': 'no-store' };

export class DevProxy {
  readonly #options: ProxyOptions;
  readonly #token = randomBytes(32).toString('base64url');
  readonly #server: Server;
  readonly #pages = new Set<ServerResponse>();
  readonly #upgraded = new Set<Duplex>();
  readonly #started = Date.now();
  #builds = 0;
  #authority = '';

  constructor(options: ProxyOptions) {
    this.#options = options;
    this.#server = createServer((request, response) => this.#serve(request, response));
    this.#server.on('upgrade', (request, socket, head) => {
      const upstream = this.#options.upstream();
      if (upstream)
        passUpgrade(request, socket, head, { origin: upstream.origin, headers: this.#inner(request, upstream) });
      else refuseUpgrade(socket, 503);
      this.#upgraded.add(socket);
      socket.on('close', () => this.#upgraded.delete(socket));
    });
  }

  /** @throws Error with `code` `EADDRINUSE` when the port is taken */
  async listen(): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      this.#server.once('error', reject).listen(this.#options.port, '127.0.0.1', resolve);
    });
    this.#authority = `127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Address that opens the page, with its token in the fragment. */
  get address(): string {
    return `http://${this.#authority}${this.#options.page || '/'}#token=${this.#token}`;
  }

  /** Reloads every open page. */
  reload(): void {
    this.#builds += 1;
    for (const page of this.#pages) this.#sendBuild(page);
  }

  close(): void {
    this.#server.close();
    this.#server.closeAllConnections();
    for (const socket of this.#upgraded) socket.destroy();
  }

  #serve(request: IncomingMessage, response: ServerResponse): void {
    const { pathname, searchParams } = new URL(request.url ?? '/', 'http://dev');
    const file = this.#pageFile(pathname);
    if (pathname === scriptPath) sendFile(response, '.js', reloadScript);
    else if (pathname === buildsPath) this.#follow(response);
    else if (pathname === proofPaths[this.#options.role]) this.#prove(response, searchParams);
    else if (request.method === 'GET' && file !== undefined) sendPageFile(response, file);
    else this.#forward(request, response);
  }

  #follow(response: ServerResponse): void {
    response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-store' });
    this.#pages.add(response);
    response.on('close', () => this.#pages.delete(response));
    this.#sendBuild(response);
  }

  #sendBuild(page: ServerResponse): void {
    page.write(`data: ${this.#started}-${this.#builds}\n\n`);
  }

  /** Answers for the server: the page holds the token of this proxy, and the server does not listen at this address. */
  #prove(response: ServerResponse, query: URLSearchParams): void {
    if (query.get('key') === keyIdOf(this.#token)) {
      const claim = { role: this.#options.role, nonce: query.get('nonce') ?? '', authority: this.#authority };
      const answer: ProofAnswer = { proof: proofOf(this.#token, claim), use: 'token', instance: 'dev' };
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(answer));
    } else {
      refuse(response, 401, 'The token is that of an earlier "npm run dev": open the address that it prints.');
    }
  }

  /** Name below `dist/ui` of the file at this path; undefined for a path of the server. */
  #pageFile(pathname: string): string | undefined {
    if (pathname.toLowerCase().replace(/\/$/, '') === this.#options.page.toLowerCase()) return 'index.html';
    return /^\/(?:assets\/[\w.-]+|icon\.svg)$/.test(pathname) ? pathname.slice(1) : undefined;
  }

  #forward(request: IncomingMessage, response: ServerResponse): void {
    const upstream = this.#options.upstream();
    if (upstream === undefined) {
      refuse(response, 503, 'The server is being restarted by "npm run dev".');
      return;
    }
    const { method, url } = request;
    const sent = forward(`${upstream.origin}${url}`, { method, headers: this.#inner(request, upstream), agent: false });
    sent.on('response', (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(response);
    });
    sent.on('error', () => {
      if (response.headersSent) response.destroy();
      else refuse(response, 503, 'The server cannot be reached; "npm run dev" may be restarting it.');
    });
    response.on('close', () => sent.destroy());
    request.pipe(sent);
  }

  /** The headers of a request with the token of the server in the place of that of this proxy. */
  #inner({ headers }: IncomingMessage, { token }: Upstream): IncomingHttpHeaders {
    const protocols = headers['sec-websocket-protocol'];
    return {
      ...headers,
      ...(headers.authorization === `Bearer ${this.#token}` && { authorization: `Bearer ${token}` }),
      // A page names its token as the second subprotocol.
      ...(protocols !== undefined && { 'sec-websocket-protocol': protocols.replaceAll(this.#token, token) }),
    };
  }
}

function sendPageFile(response: ServerResponse, name: string): void {
  const path = join(root, 'dist', 'ui', name);
  if (!existsSync(path)) {
    refuse(response, 404, `dist/ui/${name} does not exist: see the output of "npm run dev".`);
    return;
  }
  const content = readFileSync(path);
  const script = `<script type="module" src="${scriptPath}"></script></head>`;
  const isPage = name === 'index.html';
  sendFile(response, extname(name), isPage ? content.toString().replace('</head>', script) : content);
}

function sendFile(response: ServerResponse, extension: string, content: string | Buffer): void {
  const type = types[extension] ?? 'application/octet-stream';
  response.writeHead(200, { ...fileHeaders, 'content-type': type }).end(content);
}

function refuse(response: ServerResponse, status: number, message: string): void {
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(JSON.stringify({ error: { code: 'devProxy', message } }));
}
