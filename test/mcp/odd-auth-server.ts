import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import type { Test } from 'tap';

type Answer = (request: SeenAuthRequest, response: ServerResponse) => void;

export interface SeenAuthRequest {
  readonly method: string | undefined;
  readonly url: URL;
  readonly headers: IncomingMessage['headers'];
  readonly body: string;
}

/** An MCP server that refuses every request, and its authorization server, which a test makes answer wrongly. */
export class OddAuthServer {
  readonly requests: SeenAuthRequest[] = [];
  /** Answers by path, in place of the right ones. */
  readonly answers = new Map<string, Answer>();
  /** Fields over those of the metadata. */
  metadata: Readonly<Record<string, unknown>> = {};
  resourceMetadata: Readonly<Record<string, unknown>> = {};
  /** Fields over those of the redirect; undefined removes one. */
  redirect: Readonly<Record<string, string | undefined>> = {};
  readonly #server = createServer((request, response) => void this.#handle(request, response));

  static async start(t: Test): Promise<OddAuthServer> {
    const server = new OddAuthServer();
    server.#server.listen(0, '127.0.0.1');
    await once(server.#server, 'listening');
    t.teardown(async () => {
      const closed = once(server.#server, 'close');
      server.#server.close();
      server.#server.closeAllConnections();
      await closed;
    });
    return server;
  }

  get origin(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  get url(): string {
    return `${this.origin}/mcp`;
  }

  seen(path: string): readonly SeenAuthRequest[] {
    return this.requests.filter(({ url }) => url.pathname === path);
  }

  async #handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method, headers } = request;
    const seen = { method, url: new URL(request.url ?? '/', this.origin), headers, body: await text(request) };
    this.requests.push(seen);
    const answer = this.answers.get(seen.url.pathname) ?? this.#usual[seen.url.pathname];
    if (answer) answer(seen, response);
    else response.writeHead(404).end();
  }

  readonly #usual: Readonly<Record<string, Answer>> = {
    '/mcp': (_, response) => {
      const metadata = `${this.origin}/.well-known/oauth-protected-resource/mcp`;
      response.writeHead(401, { 'www-authenticate': `Bearer resource_metadata="${metadata}"` }).end();
    },
    '/.well-known/oauth-protected-resource/mcp': (_, response) =>
      json(response, { resource: this.url, authorization_servers: [this.origin], ...this.resourceMetadata }),
    '/.well-known/oauth-authorization-server': (_, response) =>
      json(response, {
        issuer: this.origin,
        authorization_endpoint: `${this.origin}/authorize`,
        token_endpoint: `${this.origin}/token`,
        registration_endpoint: `${this.origin}/register`,
        response_types_supported: ['code'],
        code_challenge_methods_supported: ['S256'],
        authorization_response_iss_parameter_supported: true,
        ...this.metadata,
      }),
    '/register': ({ body }, response) => json(response, { ...JSON.parse(body), client_id: 'registered' }, 201),
    '/authorize': ({ url }, response) => {
      const target = new URL(url.searchParams.get('redirect_uri') ?? '');
      const fields = { code: 'code-secret-1', state: url.searchParams.get('state') ?? '', iss: this.origin };
      for (const [name, value] of Object.entries({ ...fields, ...this.redirect })) {
        if (value !== undefined) target.searchParams.set(name, value);
      }
      response.writeHead(302, { location: target.href }).end();
    },
    '/token': (_, response) =>
      json(response, { access_token: 'access-secret-1', refresh_token: 'refresh-secret-1', token_type: 'Bearer' }),
  };
}

export function json(response: ServerResponse, body: unknown, status = 200): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}
