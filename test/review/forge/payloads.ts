/** Webhook payloads: GitHub's own recorded ones, with the facts of a test put in. */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import type { Forge } from './forge.ts';
import type { ForgeCheckRun, ForgeComment, ForgeInstallation, ForgePull, ForgeRepository } from './model.ts';
import * as render from './render.ts';
import type { Json } from './schema.ts';

interface Recorded {
  readonly name: string;
  readonly examples: readonly Json[];
}
let recordings: readonly Recorded[] | undefined;

function recorded(event: string, action: string): Json {
  if (!recordings) {
    const packageFile = createRequire(import.meta.url).resolve('@octokit/webhooks-examples/package.json');
    const file = join(dirname(packageFile), 'api.github.com', 'index.json');
    recordings = JSON.parse(readFileSync(file, 'utf8')) as Recorded[];
  }
  const examples = recordings.find(({ name }) => name === event)?.examples ?? [];
  const found = examples.find((example) => example['action'] === action) ?? examples[0];
  if (!found) throw new Error(`GitHub has recorded no ${event}`);
  return structuredClone(found);
}

/** Fields of every payload of a repository. */
const place = (forge: Forge, repo: ForgeRepository, sender: string): Json => ({
  repository: render.repository(forge, repo),
  sender: render.user(sender),
  installation: { id: repo.installationId, node_id: 'MDIz' },
});

/** @param more - `changes` of an edit, `before` and `after` of a push */
export function pullPayload(
  forge: Forge,
  repo: ForgeRepository,
  pull: ForgePull,
  action: string,
  more: Json = {},
): Json {
  const base = recorded('pull_request', action);
  return {
    ...base,
    ...place(forge, repo, pull.author),
    action,
    number: pull.number,
    pull_request: { ...(base['pull_request'] as Json), ...render.pull(forge, repo, pull, 'pull-request') },
    ...more,
  };
}

/** Payload of a comment that was made just now; `title` of its pull request stands for an issue's. */
export function commentPayload(forge: Forge, repo: ForgeRepository, comment: ForgeComment): Json {
  const base = recorded('issue_comment', 'created');
  const pull = repo.pulls.get(comment.number);
  const url = `${forge.url}/${repo.owner}/${repo.name}/pull/${comment.number}`;
  const isOurs = comment.author === forge.app.login;
  return {
    ...base,
    ...place(forge, repo, comment.author),
    action: 'created',
    issue: {
      ...(base['issue'] as Json),
      number: comment.number,
      title: pull?.title ?? '',
      html_url: url,
      pull_request: { url: `${forge.apiUrl}/repos/${repo.owner}/${repo.name}/pulls/${comment.number}`, html_url: url },
    },
    comment: {
      ...(base['comment'] as Json),
      ...render.comment(forge, repo, comment),
      performed_via_github_app: isOurs ? render.app(forge) : null,
    },
  };
}

export function checkRunPayload(forge: Forge, repo: ForgeRepository, run: ForgeCheckRun, action: string): Json {
  const base = recorded('check_run', action);
  const numbers = [...repo.pulls.values()].filter(({ headSha }) => headSha === run.headSha).map(({ number }) => number);
  return {
    ...base,
    ...place(forge, repo, 'ada'),
    action,
    check_run: {
      ...(base['check_run'] as Json),
      ...render.checkRun(forge, repo, run),
      pull_requests: numbers.map((number) => ({ number })),
    },
  };
}

export function installationPayload(forge: Forge, installation: ForgeInstallation, action: string): Json {
  const repositories = forge.repositories
    .filter(({ owner }) => owner === installation.owner)
    .map(({ id, owner, name }) => ({ id, node_id: 'MDEw', name, full_name: `${owner}/${name}`, private: true }));
  return {
    ...recorded('installation', action),
    action,
    installation: render.installation(forge, installation.id, installation),
    repositories,
    sender: render.user('ada'),
  };
}
