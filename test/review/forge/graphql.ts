import { Refusal } from './auth.ts';
import type { Forge } from './forge.ts';
import type { ForgeReviewComment, ForgeToken } from './model.ts';
import type { Json } from './schema.ts';

const size = 100;
const login = (author: string): string => author.replace(/\[bot\]$/, '');
const thread = (of: ForgeReviewComment) => ({
  id: `PRRT_${of.id}`,
  isResolved: of.isResolved,
  comments: { nodes: [{ body: of.body, author: { login: login(of.author) } }] },
});

/** The two operations on threads that GitHub has only here. */
export function graphql(forge: Forge, token: ForgeToken, { query, variables }: Json): Json {
  const { owner, name, number, after, threadId } = (variables ?? {}) as Json;
  if (String(query).includes('resolveReviewThread')) return { data: resolve(forge, token, String(threadId)) };
  const repo = forge.repository(String(owner), String(name));
  if (repo?.installationId !== token.installationId || token.repositories?.includes(repo.id) === false) {
    return { data: null, errors: [{ type: 'NOT_FOUND', message: 'Could not resolve to a Repository' }] };
  }
  if (!repo.pulls.has(Number(number))) return { data: { repository: { pullRequest: null } } };
  const pending = new Set(repo.reviews.filter(({ state }) => state === 'PENDING').map(({ id }) => id));
  const all = repo.reviewComments.filter((each) => each.number === number && !pending.has(each.reviewId));
  const from = Number(after ?? 0);
  const pageInfo = { hasNextPage: all.length > from + size, endCursor: String(from + size) };
  const nodes = all.slice(from, from + size).map(thread);
  return { data: { repository: { pullRequest: { reviewThreads: { pageInfo, nodes } } } } };
}

function resolve(forge: Forge, token: ForgeToken, id: string): Json {
  if (token.permissions['pull_requests'] !== 'write') throw new Refusal(403, 'Resource not accessible by integration');
  for (const { reviewComments } of forge.repositories) {
    const found = reviewComments.find((each) => `PRRT_${each.id}` === id);
    if (!found) continue;
    found.isResolved = true;
    return { resolveReviewThread: { thread: { id, isResolved: true } } };
  }
  throw new Refusal(404, 'Not Found');
}
