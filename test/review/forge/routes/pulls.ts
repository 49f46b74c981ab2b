import { type Answered, type Asked, ok, page, pullOf, type Route, repoPath } from '../asked.ts';
import { Refusal } from '../auth.ts';
import * as render from '../render.ts';
import { resource } from '../schema.ts';

const pulls = '/repos/{owner}/{repo}/pulls';
const needs = ['pull_requests:read'];

function listPulls(asked: Asked): Answered {
  const { forge, repo, query, ifNoneMatch } = asked;
  const etag = `W/"${repo.id}-${repo.version}-${query}"`;
  if (ifNoneMatch === etag) return { status: 304, body: undefined, headers: { etag } };
  const state = query.get('state') ?? 'open';
  const rows = repo.pullsByUpdate.filter((pull) => state === 'all' || pull.state === state);
  const shown = (each: (typeof rows)[number]) => render.pull(forge, repo, each);
  const answer = page(asked, { path: `${repoPath(asked)}/pulls`, rows, shown });
  return { ...answer, headers: { ...answer.headers, etag } };
}

function listFiles(asked: Asked): Answered {
  const { number, files } = pullOf(asked);
  return page(asked, { path: `${repoPath(asked)}/pulls/${number}/files`, rows: files, shown: render.file });
}

function permission({ repo, params }: Asked): Answered {
  const level = repo.collaborators.get((params['username'] ?? '').toLowerCase());
  if (level === undefined) throw new Refusal(404, 'Not Found');
  return ok(resource('repository-collaborator-permission', { permission: level, role_name: level, user: null }));
}

/** Repositories and their pull requests, to be read. */
export const pullRoutes: readonly Route[] = [
  {
    method: 'GET',
    path: '/repos/{owner}/{repo}',
    needs: ['metadata:read'],
    handle: ({ forge, repo }) => ok(render.repository(forge, repo, 'full-repository')),
  },
  {
    method: 'GET',
    path: '/repos/{owner}/{repo}/collaborators/{username}/permission',
    needs: ['metadata:read'],
    handle: permission,
  },
  { method: 'GET', path: pulls, needs, handle: listPulls },
  {
    method: 'GET',
    path: `${pulls}/{pull_number}`,
    needs,
    handle: (asked) => ok(render.pull(asked.forge, asked.repo, pullOf(asked), 'pull-request')),
  },
  { method: 'GET', path: `${pulls}/{pull_number}/files`, needs, handle: listFiles },
];
