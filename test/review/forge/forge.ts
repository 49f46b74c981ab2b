import type { ChildProcess } from 'node:child_process';
import { createHash, createHmac, randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { bearer, checkJwt, permits, Refusal, tokenOf } from './auth.ts';
import { act, Faults, happensFirst } from './faults.ts';
import { changedFiles, commitFiles, createBare, git, serveGit } from './git.ts';
import { graphql } from './graphql.ts';
import {
  ForgeApp,
  type ForgeComment,
  type ForgeDelivery,
  type ForgeInstallation,
  type ForgePull,
  ForgeRepository,
  type ForgeToken,
  shaOf,
} from './model.ts';
import { withBigNumbers, withoutBigNumbers } from './render.ts';
import { type Answered, type Route, routes } from './routes.ts';
import { faultOf, type Json } from './schema.ts';

export interface ForgeOptions {
  /** Where REST begins: `/api/v3` is GitHub Enterprise. */
  readonly prefix?: string;
  /** False for load: answers are not held against GitHub's description. */
  readonly validates?: boolean;
}

/** GitHub, as far as reviews need it: real HTTP, real git, real signatures. For tests only. */
export class Forge {
  readonly app = new ForgeApp();
  readonly faults = new Faults();
  readonly installations = new Map<number, ForgeInstallation>();
  readonly tokens = new Map<string, ForgeToken>();
  readonly deliveries: ForgeDelivery[] = [];
  /** What was asked, in order: `GET /repos/…` with the status of the answer. */
  readonly requests: { readonly method: string; readonly path: string; readonly status: number | null }[] = [];
  /** Answers that are not as GitHub describes them: must stay empty. */
  readonly mistakes: string[] = [];
  readonly children = new Set<ChildProcess>();
  /** Our clock is so much ahead of this machine's. */
  clockOffsetMs = 0;
  tokenFormat: 'classic' | 'stateless' = 'classic';
  tokenLifeMs: number | undefined;
  /** Requests that each installation may still make. */
  rateRemaining = 5_000_000;
  /** When they may again. */
  rateResetAt = 0;
  readonly #repositories = new Map<string, ForgeRepository>();
  readonly #prefix: string;
  readonly #validates: boolean;
  readonly #server: Server;
  #directory: string | undefined;
  #id = 1_000;
  #deliveryId = 9_007_199_254_740_993n;
  #url = '';

  constructor({ prefix = '', validates = true }: ForgeOptions = {}) {
    this.#prefix = prefix;
    this.#validates = validates;
    this.#server = createServer((request, response) => void this.#serve(request, response));
  }

  async start(): Promise<this> {
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve));
    this.#url = `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
    return this;
  }

  async stop(): Promise<void> {
    for (const child of this.children) child.kill();
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
    if (this.#directory) rmSync(this.#directory, { recursive: true, force: true });
  }

  /** Base of git: `URL/owner/name.git`. */
  get url(): string {
    return this.#url;
  }
  get apiUrl(): string {
    return this.#url + this.#prefix;
  }
  now(): number {
    return Date.now() + this.clockOffsetMs;
  }
  nextId(): number {
    this.#id += 1;
    return this.#id;
  }
  get repositories(): readonly ForgeRepository[] {
    return [...this.#repositories.values()];
  }
  repository(owner: string, name: string): ForgeRepository | undefined {
    return this.#repositories.get(`${owner}/${name}`.toLowerCase());
  }

  install(owner: string): ForgeInstallation {
    const known = [...this.installations.values()].find((each) => each.owner === owner);
    if (known) return known;
    const made = { id: this.nextId(), owner, permissions: { ...this.app.permissions }, isSuspended: false };
    this.installations.set(made.id, made);
    return made;
  }

  /** Without git: pull requests are what they are said to be. */
  addRepository(owner: string, name: string): ForgeRepository {
    return this.#add(owner, name);
  }

  /** With a bare repository behind it, and `files` on `main`. */
  async addGitRepository(
    owner: string,
    name: string,
    files: Readonly<Record<string, string>>,
  ): Promise<ForgeRepository> {
    this.#directory ??= mkdtempSync(join(tmpdir(), 'oratorio-forge-'));
    const directory = join(this.#directory, `${owner}-${name}.git`);
    await createBare(directory);
    await commitFiles(directory, 'main', files, { message: 'First' });
    return this.#add(owner, name, directory);
  }

  #add(owner: string, name: string, directory?: string): ForgeRepository {
    const made = new ForgeRepository(this.nextId(), owner, name, this.install(owner).id, directory);
    this.#repositories.set(`${owner}/${name}`.toLowerCase(), made);
    return made;
  }

  /** A pull request; with git its head is the branch `headRef`. */
  async openPull(repo: ForgeRepository, own: Partial<ForgePull> & { readonly number: number }): Promise<ForgePull> {
    const made = this.addPull(repo, own);
    if (repo.gitDirectory) await this.push(repo, made.number);
    return made;
  }

  /** Without a look at git. */
  addPull(repo: ForgeRepository, own: Partial<ForgePull> & { readonly number: number }): ForgePull {
    const headSha = own.headSha ?? shaOf(`${repo.owner}/${repo.name}#${own.number}`);
    const made: ForgePull = {
      title: `Change ${own.number}`,
      body: '',
      author: 'ada',
      authorAssociation: 'MEMBER',
      state: 'open',
      isMerged: false,
      isDraft: false,
      isFork: false,
      labels: [],
      baseRef: 'main',
      baseSha: shaOf('base'),
      headRef: 'change',
      updatedAt: this.now(),
      files: [],
      filesAt: new Map(),
      ...own,
      headSha,
      commits: [headSha],
    };
    repo.pulls.set(made.number, made);
    repo.version += 1;
    return made;
  }

  /** The head is now `headSha`, or with git what its branch is. */
  async push(
    repo: ForgeRepository,
    number: number,
    change: Partial<Pick<ForgePull, 'headSha' | 'files'>> = {},
  ): Promise<ForgePull> {
    const pull = repo.pulls.get(number);
    if (!pull) throw new Error(`There is no pull request ${number}`);
    pull.filesAt.set(pull.headSha, pull.files);
    if (repo.gitDirectory) {
      const head = await git(repo.gitDirectory, ['rev-parse', `refs/heads/${pull.headRef}`]);
      const base = await git(repo.gitDirectory, ['rev-parse', `refs/heads/${pull.baseRef}`]);
      await git(repo.gitDirectory, ['update-ref', `refs/pull/${number}/head`, head]);
      Object.assign(pull, { headSha: head, baseSha: base, files: await changedFiles(repo.gitDirectory, base, head) });
    } else Object.assign(pull, change);
    pull.commits.push(pull.headSha);
    this.touch(repo, number);
    return pull;
  }

  /** Something about it has changed. */
  touch(repo: ForgeRepository, number: number, change: Partial<ForgePull> = {}): void {
    const pull = repo.pulls.get(number);
    if (!pull) return;
    Object.assign(pull, { updatedAt: Math.max(this.now(), pull.updatedAt + 1_000) }, change);
    repo.version += 1;
  }

  comment(repo: ForgeRepository, number: number, author: string, body: string): ForgeComment {
    const made = { id: this.nextId(), number, author, body, reactions: [] };
    repo.comments.push(made);
    this.touch(repo, number);
    return made;
  }

  /** Signs and sends a webhook as GitHub does, and keeps it among the deliveries. @returns status; 0: no connection */
  async deliver(
    event: string,
    payload: string | Json,
    {
      guid = randomUUID(),
      redelivery = false,
      headers = {},
    }: { guid?: string; redelivery?: boolean; headers?: Record<string, string> } = {},
  ): Promise<number> {
    const body = typeof payload === 'string' ? payload : JSON.stringify(payload);
    const { url, secret } = this.app.hook;
    const signature = createHmac('sha256', secret).update(body).digest('hex');
    const statusCode = await fetch(url, {
      method: 'POST',
      body,
      headers: {
        'content-type': 'application/json',
        'user-agent': 'GitHub-Hookshot/test',
        'x-github-event': event,
        'x-github-delivery': guid,
        'x-hub-signature-256': `sha256=${signature}`,
        ...headers,
      },
    }).then(
      async (response) => {
        await response.arrayBuffer();
        return response.status;
      },
      () => 0,
    );
    this.#deliveryId += 1n;
    const { action } = JSON.parse(body) as { action?: string };
    this.deliveries.push({
      id: this.#deliveryId,
      guid,
      event,
      action: action ?? null,
      deliveredAt: this.now(),
      redelivery,
      statusCode,
      payload: body,
    });
    return statusCode;
  }

  /** How often something was asked for. */
  count(method: string, path: RegExp): number {
    return this.requests.filter((each) => each.method === method && path.test(each.path)).length;
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { pathname } = new URL(request.url ?? '/', 'http://forge.test');
    if (/^\/[^/]+\/[^/]+\.git\//.test(pathname)) {
      serveGit(this, request, response);
      return;
    }
    const method = request.method ?? 'GET';
    response.setHeader('date', new Date(this.now()).toUTCString());
    const fault = this.faults.take(method, pathname);
    if (fault && !happensFirst(fault)) {
      this.requests.push({ method, path: pathname, status: fault.status ?? null });
      act(fault, response, '');
      return;
    }
    const answer = await this.#answer(request, pathname);
    const body = answer.body === undefined ? '' : withBigNumbers(JSON.stringify(answer.body));
    this.requests.push({ method, path: pathname, status: answer.status });
    if (fault && act(fault, response, body)) return;
    if (fault?.delayMs) await new Promise((resolve) => setTimeout(resolve, fault.delayMs));
    const etag = answer.headers?.['etag'] ?? `"${createHash('sha1').update(body).digest('hex')}"`;
    response.writeHead(answer.status, {
      'x-ratelimit-remaining': String(Math.max(0, this.rateRemaining)),
      'x-ratelimit-reset': String(Math.ceil(this.rateResetAt / 1_000)),
      etag,
      ...(body && { 'content-type': 'application/json; charset=utf-8' }),
      ...answer.headers,
    });
    response.end(body);
  }

  async #answer(request: IncomingMessage, pathname: string): Promise<Answered> {
    try {
      const body = await jsonOf(request);
      if (pathname === '/graphql' || pathname === '/api/graphql') {
        return { status: 200, body: graphql(this, tokenOf(this, bearer(request.headers.authorization)), body) };
      }
      return await this.#route(request, pathname.slice(this.#prefix.length), body);
    } catch (error) {
      if (error instanceof Refusal) return { status: error.status, body: error.body };
      this.mistakes.push(error instanceof Error ? (error.stack ?? error.message) : String(error));
      return { status: 500, body: { message: 'The forge is broken' } };
    }
  }

  async #route(request: IncomingMessage, path: string, body: Json): Promise<Answered> {
    const found = matching(request.method ?? 'GET', path);
    if (!found) throw new Refusal(404, 'Not Found');
    const { route, params } = found;
    const authorization = request.headers.authorization;
    const query = new URL(request.url ?? '/', 'http://forge.test').searchParams;
    const ifNoneMatch = request.headers['if-none-match'];
    const access =
      route.needs === 'app' ? this.#asApp(authorization) : this.#asInstallation(route, params, authorization);
    const answer = await route.handle({ forge: this, params, query, body, authorization, ifNoneMatch, ...access });
    if (answer.status !== 304) this.rateRemaining -= 1;
    if (this.#validates) {
      const fault = faultOf(
        route.path,
        route.method,
        answer.status,
        answer.body === undefined ? undefined : withoutBigNumbers(answer.body),
      );
      if (fault) this.mistakes.push(fault);
    }
    return answer;
  }

  #asApp(authorization: string | undefined) {
    checkJwt(this, authorization);
    // Routes of the App never look at these.
    return { repo: nowhere, token: nobody };
  }

  #asInstallation(
    route: Route,
    { owner = '', repo: name = '' }: Readonly<Record<string, string>>,
    authorization: string | undefined,
  ) {
    const token = tokenOf(this, bearer(authorization));
    const repo = this.repository(owner, name);
    const isSeen = repo?.installationId === token.installationId && (token.repositories?.includes(repo.id) ?? true);
    if (!repo || !isSeen) throw new Refusal(404, 'Not Found');
    const needs = route.needs as readonly string[];
    const isPermitted = needs.some((need) => {
      const [permission = '', level = ''] = need.split(':');
      return permits(token.permissions[permission], level);
    });
    if (!isPermitted) throw new Refusal(403, 'Resource not accessible by integration');
    if (this.rateRemaining <= 0) throw new Refusal(403, 'API rate limit exceeded for installation ID 1.');
    return { repo, token };
  }
}

const nowhere = new ForgeRepository(0, '', '', 0);
const nobody: ForgeToken = { installationId: 0, repositories: [], permissions: {}, expiresAt: 0 };

const patterns = routes.map((route) => ({
  route,
  names: [...route.path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => name),
  pattern: new RegExp(`^${route.path.replace(/\{\w+\}/g, '([^/]+)')}$`),
}));

function matching(
  method: string,
  path: string,
): { readonly route: Route; readonly params: Record<string, string> } | undefined {
  for (const { route, names, pattern } of patterns) {
    const match = route.method === method ? pattern.exec(path) : null;
    if (match)
      return {
        route,
        params: Object.fromEntries(names.map((name, at) => [name, decodeURIComponent(match[at + 1] ?? '')])),
      };
  }
  return;
}

async function jsonOf(request: IncomingMessage): Promise<Json> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  const text = Buffer.concat(chunks).toString();
  return text === '' ? {} : (JSON.parse(text) as Json);
}
