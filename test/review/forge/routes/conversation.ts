import {
  type Answered,
  type Asked,
  checkedBody,
  listed,
  ok,
  page,
  pullOf,
  type Route,
  repoPath,
  word,
} from '../asked.ts';
import { Refusal } from '../auth.ts';
import type { ForgeComment } from '../model.ts';
import * as render from '../render.ts';

function commentOf({ repo, params }: Asked): ForgeComment {
  const found = repo.comments.find(({ id }) => id === Number(params['comment_id']));
  if (!found) throw new Refusal(404, 'Not Found');
  return found;
}

function listComments(asked: Asked): Answered {
  const { forge, repo } = asked;
  const { number } = pullOf(asked);
  const rows = listed(asked, repo.comments).filter((each) => each.number === number);
  const shown = (each: ForgeComment) => render.comment(forge, repo, each);
  return page(asked, { path: `${repoPath(asked)}/issues/${number}/comments`, rows, shown });
}

function createComment(asked: Asked): Answered {
  const { forge, repo, body } = asked;
  const made = forge.comment(repo, pullOf(asked).number, forge.app.login, checkedBody(body['body']));
  return ok(render.comment(forge, repo, made), 201);
}

function editComment(asked: Asked): Answered {
  const { forge, repo, body } = asked;
  const comment = commentOf(asked);
  if (comment.author !== forge.app.login) throw new Refusal(403, 'Resource not accessible by integration');
  comment.body = checkedBody(body['body']);
  comment.edits += 1;
  return ok(render.comment(forge, repo, comment));
}

function deleteComment(asked: Asked): Answered {
  const { forge, repo } = asked;
  const comment = commentOf(asked);
  if (comment.author !== forge.app.login) throw new Refusal(403, 'Resource not accessible by integration');
  repo.comments.splice(repo.comments.indexOf(comment), 1);
  forge.touch(repo, comment.number);
  return { status: 204, body: undefined };
}

function react(asked: Asked): Answered {
  const { forge, body } = asked;
  const { reactions } = commentOf(asked);
  const content = word(body['content']);
  const before = reactions.find((each) => each.user === forge.app.login && each.content === content);
  if (before) return ok(render.reaction(before));
  const made = { id: forge.nextId(), user: forge.app.login, content };
  reactions.push(made);
  return ok(render.reaction(made), 201);
}

const issues = '/repos/{owner}/{repo}/issues';
const level = (of: 'read' | 'write') => ({ needs: [`issues:${of}`, `pull_requests:${of}`] });

/** The conversation of a pull request. */
export const conversationRoutes: readonly Route[] = [
  { ...level('read'), method: 'GET', path: `${issues}/{issue_number}/comments`, handle: listComments },
  { ...level('write'), method: 'POST', path: `${issues}/{issue_number}/comments`, handle: createComment },
  { ...level('write'), method: 'PATCH', path: `${issues}/comments/{comment_id}`, handle: editComment },
  { ...level('write'), method: 'DELETE', path: `${issues}/comments/{comment_id}`, handle: deleteComment },
  { ...level('write'), method: 'POST', path: `${issues}/comments/{comment_id}/reactions`, handle: react },
];
