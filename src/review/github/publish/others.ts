import type * as v from 'valibot';
import { markers } from '../../anchors/index.ts';
import { CheckRunAnswer, CheckRunList, ReactionAnswer, ThreadsAnswer } from '../answers.ts';
import { parseAnswer } from '../client.ts';
import { longestGitHubText } from '../limits.ts';
import { once } from './once.ts';
import type { CheckRunRequest, ReactionRequest, ResolveThreadRequest } from './requests.ts';
import { isByUs, type Target } from './target.ts';
import { cut } from './text.ts';

/**
 * One check run per `externalId`: created the first time, updated from then on. GitHub removes no check run: a duplicate of a late
 * request is updated, too.
 */
export async function sendCheckRun(
  target: Target,
  request: v.InferOutput<typeof CheckRunRequest>,
): Promise<{ readonly checkRunId: number; readonly url: string | null }> {
  const { api } = target;
  const fields = checkRunFields(request);
  let isNew = false;
  const make = async (): Promise<CheckRunAnswer[]> => {
    const { data } = await api.write('POST /repos/{owner}/{repo}/check-runs', {
      ...fields,
      head_sha: request.headSha,
      external_id: request.externalId,
    });
    isNew = true;
    return [parseAnswer(CheckRunAnswer, data, 'a check run')];
  };
  const find = async () => {
    const found = await findCheckRuns(target, request);
    return found.length === 0 ? undefined : found;
  };
  const runs = await once(target, find, make);
  if (!isNew) for (const { id } of runs) await updateCheckRun(target, request, id);
  const [first] = runs.toSorted((a, b) => a.id - b.id);
  if (!first) throw new Error('once() returned no check run');
  return { checkRunId: first.id, url: first.html_url ?? null };
}

async function updateCheckRun(
  { api }: Target,
  request: v.InferOutput<typeof CheckRunRequest>,
  id: number,
): Promise<void> {
  const parameters = { ...checkRunFields(request), check_run_id: id };
  const { data } = await api.write('PATCH /repos/{owner}/{repo}/check-runs/{check_run_id}', parameters);
  parseAnswer(CheckRunAnswer, data, 'a check run');
}

const longestTitle = 255;

function checkRunFields({
  name,
  status,
  conclusion,
  title,
  summary,
  detailsUrl,
}: v.InferOutput<typeof CheckRunRequest>) {
  return {
    name,
    status,
    ...(conclusion && { conclusion }),
    ...(detailsUrl && { details_url: detailsUrl }),
    output: { title: cut(title, longestTitle), summary: cut(summary, longestGitHubText) },
  };
}

async function findCheckRuns(
  { api, app }: Target,
  { headSha, externalId, name }: v.InferOutput<typeof CheckRunRequest>,
): Promise<CheckRunAnswer[]> {
  const found: CheckRunAnswer[] = [];
  const route = 'GET /repos/{owner}/{repo}/commits/{ref}/check-runs';
  for await (const { data } of api.pages(route, { ref: headSha, check_name: name, filter: 'all', app_id: app.id })) {
    const { check_runs } = parseAnswer(CheckRunList, data, 'check runs');
    found.push(...check_runs.filter((run) => run.external_id === externalId && run.app?.id === app.id));
  }
  return found;
}

/** Adds a reaction. GitHub counts the same reaction twice as one. */
export async function sendReaction(
  { api }: Target,
  { commentId, content, place }: v.InferOutput<typeof ReactionRequest>,
): Promise<{ readonly reactionId: number }> {
  const comments = place === 'thread' ? 'pulls/comments' : 'issues/comments';
  const { data } = await api.write(`POST /repos/{owner}/{repo}/${comments}/{comment_id}/reactions`, {
    comment_id: commentId,
    content,
  });
  return { reactionId: parseAnswer(ReactionAnswer, data, 'a reaction').id };
}

const threadsQuery = `query ($owner: String!, $name: String!, $number: Int!, $after: String) {
  repository(owner: $owner, name: $name) {
    pullRequest(number: $number) {
      reviewThreads(first: 100, after: $after) {
        pageInfo { hasNextPage endCursor }
        nodes { id isResolved comments(first: 1) { nodes { body author { login } } } }
      }
    }
  }
}`;
const resolveMutation = `mutation ($threadId: ID!) {
  resolveReviewThread(input: { threadId: $threadId }) { thread { id isResolved } }
}`;

/** Resolves the thread that our comment on a finding began. Only GraphQL can do that. A repetition does no harm. */
export async function sendResolveThread(
  target: Target,
  { number, findingId }: v.InferOutput<typeof ResolveThreadRequest>,
): Promise<{ readonly threadNodeId: string | null; readonly wasResolved: boolean }> {
  const marker = markers.finding(findingId);
  const { owner, name } = target.api.repository;
  let after: string | null = null;
  do {
    const answer = await target.api.graphql(threadsQuery, { owner, name, number, after });
    const threads = parseAnswer(ThreadsAnswer, answer, 'threads').repository.pullRequest?.reviewThreads;
    const thread = threads?.nodes.find(
      ({
        comments: {
          nodes: [first],
        },
      }) => {
        return first !== undefined && isByUs(target.app.slug, first.author?.login) && first.body.includes(marker);
      },
    );
    if (thread) {
      if (!thread.isResolved) await target.api.graphql(resolveMutation, { threadId: thread.id });
      return { threadNodeId: thread.id, wasResolved: thread.isResolved };
    }
    after = threads?.pageInfo.hasNextPage ? threads.pageInfo.endCursor : null;
  } while (after !== null);
  // The finding is in the summary, or a user deleted the comment: there is no thread to resolve.
  return { threadNodeId: null, wasResolved: true };
}
