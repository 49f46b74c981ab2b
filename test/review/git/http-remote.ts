import { execFileSync, spawn } from 'node:child_process';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Test } from 'tap';

/** Behaviour of the remote for one request; `git` passes it to git's own server program. */
export type Behaviour = 'git' | ((request: IncomingMessage, response: ServerResponse) => void);

/** Content of a request. */
export interface SeenRequest {
  readonly url: string;
  readonly authorization: string | undefined;
}

/** A forge that speaks git over HTTP: `git http-backend` behind a small server. */
export class HttpRemote {
  readonly seen: SeenRequest[] = [];
  behaviour: Behaviour = 'git';
  /** Without it, everybody may read. */
  token: string | undefined;
  readonly #directory: string;
  #port = 0;

  private constructor(directory: string) {
    this.#directory = directory;
  }

  /** @param directory holds `owner/name.git` */
  static async start(t: Test, directory: string): Promise<HttpRemote> {
    const remote = new HttpRemote(directory);
    const server = createServer((request, response) => remote.#answer(request, response));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    remote.#port = (server.address() as AddressInfo).port;
    t.teardown(() => {
      server.closeAllConnections();
      server.close();
    });
    return remote;
  }

  get endpoint(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  #answer(request: IncomingMessage, response: ServerResponse): void {
    const { authorization } = request.headers;
    this.seen.push({ url: request.url ?? '', authorization });
    if (this.behaviour === 'git') this.#guard(request, response);
    else this.behaviour(request, response);
  }

  #guard(request: IncomingMessage, response: ServerResponse): void {
    const { authorization } = request.headers;
    const expected = this.token && `basic ${Buffer.from(`x-access-token:${this.token}`).toString('base64')}`;
    if (expected && authorization?.toLowerCase() !== expected.toLowerCase()) {
      response.writeHead(401, { 'www-authenticate': 'Basic realm="git"' }).end();
      return;
    }
    this.#serve(request, response);
  }

  #serve(request: IncomingMessage, response: ServerResponse): void {
    const url = new URL(request.url ?? '/', this.endpoint);
    const backend = spawn(gitHttpBackend, [], {
      env: {
        PATH: process.env['PATH'] ?? '',
        GIT_PROJECT_ROOT: this.#directory,
        GIT_HTTP_EXPORT_ALL: '1',
        GIT_CONFIG_NOSYSTEM: '1',
        GIT_CONFIG_GLOBAL: '/dev/null',
        PATH_INFO: url.pathname,
        QUERY_STRING: url.search.slice(1),
        REQUEST_METHOD: request.method ?? 'GET',
        CONTENT_TYPE: request.headers['content-type'] ?? '',
        HTTP_CONTENT_ENCODING: request.headers['content-encoding'] ?? '',
        GIT_PROTOCOL: String(request.headers['git-protocol'] ?? ''),
        REMOTE_USER: 'reader',
      },
      stdio: ['pipe', 'pipe', 'ignore'],
    });
    request.pipe(backend.stdin).on('error', () => {});
    let head = Buffer.alloc(0);
    backend.stdout.on('data', (chunk: Buffer) => {
      if (response.headersSent) return void response.write(chunk);
      head = Buffer.concat([head, chunk]);
      const end = head.indexOf('\r\n\r\n');
      if (end === -1) return;
      const headers = head
        .toString('latin1', 0, end)
        .split('\r\n')
        .map((line) => line.split(': ', 2) as [string, string]);
      const status = headers.find(([name]) => name === 'Status')?.[1] ?? '200';
      response.writeHead(
        Number.parseInt(status, 10),
        Object.fromEntries(headers.filter(([name]) => name !== 'Status')),
      );
      response.write(head.subarray(end + 4));
    });
    backend.stdout.on('end', () => response.end());
    response.on('close', () => backend.kill('SIGKILL'));
  }
}

const gitHttpBackend = `${execFileSync('git', ['--exec-path']).toString().trim()}/git-http-backend`;
