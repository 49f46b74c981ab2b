import { createHash } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Answered, Route } from './asked.ts';
import { bearer, checkJwt, permits, Refusal, tokenOf } from './auth.ts';
import { act, type Fault, happensFirst } from './faults.ts';
import type { Forge } from './forge.ts';
import { serveGit } from './git.ts';
import { graphql } from './graphql.ts';
import { ForgeRepository, type ForgeToken } from './model.ts';
import { withBigNumbers, withoutBigNumbers } from './render.ts';
import { routeOf } from './routes.ts';
import { faultOf, type Json } from './schema.ts';

/** Serves one request as GitHub does, except for injected faults. */
export async function serve(forge: Forge, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { pathname } = new URL(request.url ?? '/', 'http://forge.test');
  const method = request.method ?? 'GET';
  const isGit = /^\/[^/]+\/[^/]+\.git\//.test(pathname);
  const fault = forge.faults.take(method, pathname);
  response.setHeader('date', new Date(forge.now()).toUTCString());
  if (fault && (isGit || !(happensFirst(fault) || fault.kind === 'late')) && (await act(fault, response, ''))) {
    forge.note(method, pathname, fault.status ?? null);
  } else if (isGit) {
    forge.note(method, pathname, null);
    serveGit(forge, request, response);
  } else await serveApi(forge, request, response, { method, pathname, fault });
}

interface Call {
  readonly method: string;
  readonly pathname: string;
  readonly fault: Fault | undefined;
}

async function serveApi(
  forge: Forge,
  request: IncomingMessage,
  response: ServerResponse,
  { method, pathname, fault }: Call,
): Promise<void> {
  const text = await textOf(request);
  if (fault?.kind === 'late') await act(fault, response, '');
  const answer = await answerTo(forge, request, pathname, text);
  const body = answer.body === undefined ? '' : withBigNumbers(JSON.stringify(answer.body));
  forge.note(method, pathname, answer.status);
  if (fault?.kind === 'late') return fault.onDone?.(answer.status);
  if (fault && happensFirst(fault) && (await act(fault, response, body))) return;
  response.writeHead(answer.status, {
    'x-ratelimit-remaining': String(Math.max(0, forge.rateRemaining)),
    'x-ratelimit-reset': String(Math.ceil(forge.rateResetAt / 1_000)),
    etag: answer.headers?.['etag'] ?? `"${createHash('sha1').update(body).digest('hex')}"`,
    ...(body && { 'content-type': 'application/json; charset=utf-8' }),
    ...answer.headers,
  });
  response.end(body);
}

async function answerTo(forge: Forge, request: IncomingMessage, pathname: string, text: string): Promise<Answered> {
  try {
    const body = text === '' ? {} : (JSON.parse(text) as Json);
    if (pathname === '/graphql' || pathname === '/api/graphql') {
      return { status: 200, body: graphql(forge, tokenOf(forge, bearer(request.headers.authorization)), body) };
    }
    return await answerOfRoute(forge, request, pathname.slice(forge.prefix.length), body);
  } catch (error) {
    if (error instanceof Refusal) return { status: error.status, body: error.body };
    forge.mistakes.push(error instanceof Error ? (error.stack ?? error.message) : String(error));
    return { status: 500, body: { message: 'The forge is broken' } };
  }
}

async function answerOfRoute(forge: Forge, request: IncomingMessage, path: string, body: Json): Promise<Answered> {
  const found = routeOf(request.method ?? 'GET', path);
  if (!found) throw new Refusal(404, 'Not Found');
  const { route, params } = found;
  const { authorization, 'if-none-match': ifNoneMatch } = request.headers;
  const query = new URL(request.url ?? '/', 'http://forge.test').searchParams;
  const access = accessTo(forge, route, params, authorization);
  const answer = await route.handle({ forge, params, query, body, ifNoneMatch, ...access });
  if (answer.status !== 304) forge.rateRemaining -= 1;
  if (forge.validates) keepMistake(forge, route, answer);
  return answer;
}

function keepMistake(forge: Forge, { path, method }: Route, { status, body }: Answered): void {
  const mistake = faultOf(path, method, status, body === undefined ? undefined : withoutBigNumbers(body));
  if (mistake) forge.mistakes.push(mistake);
}

/** Placeholders: routes that the App calls with its own JWT never read them. */
const nowhere = new ForgeRepository(0, '', '', 0);
const nobody: ForgeToken = { installationId: 0, repositories: [], permissions: {}, expiresAt: 0 };

/** @throws Refusal */
function accessTo(
  forge: Forge,
  { needs }: Route,
  { owner = '', repo: name = '' }: Readonly<Record<string, string>>,
  authorization: string | undefined,
) {
  if (needs === 'app') {
    checkJwt(forge, authorization);
    return { repo: nowhere, token: nobody };
  }
  const token = tokenOf(forge, bearer(authorization));
  const repo = forge.repository(owner, name);
  const isSeen = repo?.installationId === token.installationId && (token.repositories?.includes(repo.id) ?? true);
  if (!repo || !isSeen) throw new Refusal(404, 'Not Found');
  const isPermitted = needs.some((need) => {
    const [permission = '', level = ''] = need.split(':');
    return permits(token.permissions[permission], level);
  });
  if (!isPermitted) throw new Refusal(403, 'Resource not accessible by integration');
  if (forge.rateRemaining <= 0) throw new Refusal(403, 'API rate limit exceeded for installation ID 1.');
  return { repo, token };
}

async function textOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString();
}
