import * as v from 'valibot';
import { repositoryKeyOf } from '../settings/index.ts';
import type { NewCommand, NewJob } from '../store/index.ts';
import { parseCommand } from './command.ts';
import { type CommandFacts, judgeCommand } from './eligibility.ts';
import {
  CheckRun,
  type Envelope,
  Installation,
  IssueComment,
  PullRequest,
  RepositoryChange,
  ReviewComment,
  SubmittedReview,
  type Written,
} from './payloads.ts';

/** Settings that the intake applies. */
export interface IntakeRules {
  /** Secrets by which a delivery may be signed; none: no delivery is taken in. */
  readonly secrets: readonly string[];
  readonly instance: string;
  readonly handle: string;
  /** Id of our App, whose check runs are ours; undefined: not known. */
  readonly appId: string | undefined;
  /** Keys of the configured repositories, and whether a workspace route leads to each. */
  readonly repositories: ReadonlyMap<string, { readonly hasWorkspaceRoute: boolean }>;
  /** Owners of the configured repositories, in lower case. */
  readonly owners: ReadonlySet<string>;
}

/** Consequence of a delivery. Nothing has happened yet. */
export type Decision =
  | { readonly kind: 'ignored'; readonly reason: string }
  | {
      readonly kind: 'queued';
      readonly job: NewJob;
      readonly number: number | null;
      readonly command: NewCommand | null;
    }
  | {
      readonly kind: 'rejected';
      readonly errorCode: string;
      readonly number: number;
      readonly command: NewCommand | null;
      /** Job that answers the author; null: no answer. */
      readonly job: NewJob | null;
    };

/** A payload missing a required field. Names the field and never its value. */
export class PayloadError extends Error {
  override readonly name = 'PayloadError';
}

type Judge = (payload: unknown, rules: IntakeRules, what: string) => Decision;

const ignored = (reason: string): Decision => ({ kind: 'ignored', reason });

/** Events that reviews depend on; any other change of a pull request is ignored. */
const table: Readonly<Record<string, Readonly<Record<string, Judge>>>> = {
  issue_comment: { created: comment },
  pull_request_review_comment: { created: reviewComment },
  pull_request_review: { submitted: submittedReview },
  pull_request: {
    opened: pullRequest,
    reopened: pullRequest,
    synchronize: pullRequest,
    ready_for_review: pullRequest,
    converted_to_draft: pullRequest,
    closed: pullRequest,
    labeled: pullRequest,
    unlabeled: pullRequest,
    edited: editedPullRequest,
  },
  check_run: { rerequested: checkRun },
  installation: {
    created: installation,
    deleted: installation,
    suspend: installation,
    unsuspend: installation,
    new_permissions_accepted: installation,
  },
  installation_repositories: { added: installation, removed: installation },
  repository: {
    renamed: repositoryChange,
    transferred: repositoryChange,
    archived: repositoryChange,
    unarchived: repositoryChange,
    deleted: repositoryChange,
    edited: repositoryChange,
  },
};

/**
 * Decides the consequence of a signed delivery, by event and action before any other field is read. Pure.
 *
 * @throws PayloadError an event with a consequence lacks a required field
 */
export function decide(event: string, envelope: Envelope, payload: unknown, rules: IntakeRules): Decision {
  const actions = Object.hasOwn(table, event) ? table[event] : undefined;
  if (!actions) return ignored('eventIgnored');
  const { action = '' } = envelope;
  const judge = Object.hasOwn(actions, action) ? actions[action] : undefined;
  return judge ? judge(payload, rules, `${event}.${action}`) : ignored('actionIgnored');
}

/** The key of a payload's repository; undefined when its host is not the configured one. */
export function repositoryOf(
  repository: { readonly full_name: string; readonly html_url?: string | undefined },
  { instance }: Pick<IntakeRules, 'instance'>,
): string | undefined {
  const { full_name, html_url } = repository;
  const host = html_url === undefined ? instance : URL.canParse(html_url) ? new URL(html_url).host : '';
  return host.toLowerCase() === instance ? repositoryKeyOf(instance, full_name) : undefined;
}

function read<T>(schema: v.GenericSchema<unknown, T>, payload: unknown): T {
  const result = v.safeParse(schema, payload);
  if (result.success) return result.output;
  const [issue] = result.issues;
  const path = (issue.path ?? []).map((item) => String(item.key)).join('.');
  throw new PayloadError(`${path || 'the payload'} is missing or of the wrong type`);
}

/** Key and settings of a configured repository. */
function configured(repository: Parameters<typeof repositoryOf>[0], rules: IntakeRules) {
  const repositoryKey = repositoryOf(repository, rules);
  const found = repositoryKey === undefined ? undefined : rules.repositories.get(repositoryKey);
  return repositoryKey === undefined || !found ? undefined : { repositoryKey, ...found };
}

/** Key of the jobs of one pull request: they run in the order of their arrival. */
const keyOf = (repositoryKey: string, number: number): string => `${repositoryKey}#${number}`;

function pullRequest(payload: unknown, rules: IntakeRules, reason: string): Decision {
  const { repository, pull_request } = read(PullRequest, payload);
  const known = configured(repository, rules);
  if (!known) return ignored('repositoryNotConfigured');
  const { number } = pull_request;
  const key = keyOf(known.repositoryKey, number);
  const job: NewJob = {
    kind: 'delivery',
    key,
    payload: { repositoryKey: known.repositoryKey, number, reason },
    dedupe: `pull:${key}`,
  };
  return { kind: 'queued', job, number, command: null };
}

/** Judges an edit: another base is another change; a title may take a pull request out of review, or into it. */
function editedPullRequest(payload: unknown, rules: IntakeRules, reason: string): Decision {
  const { changes } = read(PullRequest, payload);
  if (changes?.base === undefined && changes?.title === undefined) return ignored('editIgnored');
  return pullRequest(payload, rules, reason);
}

function checkRun(payload: unknown, rules: IntakeRules, reason: string): Decision {
  const { repository, check_run } = read(CheckRun, payload);
  const known = configured(repository, rules);
  if (!known) return ignored('repositoryNotConfigured');
  const { app, external_id, head_sha: headSha, pull_requests } = check_run;
  if (rules.appId !== undefined && app && String(app.id) !== rules.appId) return ignored('checkRunOfAnother');
  // GitHub names no number for a pull request from a fork; our external id of the check run leads to it.
  const number = pull_requests[0]?.number ?? null;
  const externalId = external_id || null;
  if (number === null && externalId === null) return ignored('checkRunWithoutPullRequest');
  const key = number === null ? `${known.repositoryKey}@${headSha}` : keyOf(known.repositoryKey, number);
  const job: NewJob = {
    kind: 'delivery',
    key,
    payload: { repositoryKey: known.repositoryKey, number, reason, headSha, externalId },
  };
  return { kind: 'queued', job, number, command: null };
}

function installation(payload: unknown, rules: IntakeRules, reason: string): Decision {
  const { id, account } = read(Installation, payload).installation;
  const owner = account.login.toLowerCase();
  if (!rules.owners.has(owner)) return ignored('repositoryNotConfigured');
  const job: NewJob = {
    kind: 'sync',
    key: `owner:${rules.instance}/${owner}`,
    payload: { trigger: 'webhook', owner, installationId: id, reason },
  };
  return { kind: 'queued', job, number: null, command: null };
}

function repositoryChange(payload: unknown, rules: IntakeRules, reason: string): Decision {
  const known = configured(read(RepositoryChange, payload).repository, rules);
  if (!known) return ignored('repositoryNotConfigured');
  const { repositoryKey } = known;
  const job: NewJob = {
    kind: 'sync',
    key: repositoryKey,
    payload: { trigger: 'webhook', repositoryKey, reason },
  };
  return { kind: 'queued', job, number: null, command: null };
}

function comment(payload: unknown, rules: IntakeRules): Decision {
  const { repository, issue, comment } = read(IssueComment, payload);
  if (issue.pull_request === undefined) return ignored('notAPullRequest');
  return commandIn(comment, { repository, number: issue.number, place: 'conversation', threadId: null }, rules);
}

function reviewComment(payload: unknown, rules: IntakeRules): Decision {
  const { repository, pull_request, comment } = read(ReviewComment, payload);
  const threadId = comment.in_reply_to_id ?? comment.id;
  return commandIn(comment, { repository, number: pull_request.number, place: 'thread', threadId }, rules);
}

function submittedReview(payload: unknown, rules: IntakeRules): Decision {
  const { repository, pull_request, review } = read(SubmittedReview, payload);
  return commandIn(review, { repository, number: pull_request.number, place: 'review', threadId: null }, rules);
}

/** Place of a text on a pull request. */
interface TextPlace {
  readonly repository: Parameters<typeof repositoryOf>[0];
  readonly number: number;
  readonly place: 'conversation' | 'thread' | 'review';
  /** First comment of the thread. */
  readonly threadId: number | null;
}

/** Judges a person's text as a command, in the same way for each place. */
function commandIn(text: Written, { repository, number, place, threadId }: TextPlace, rules: IntakeRules): Decision {
  const parsed = parseCommand(text.body, rules.handle);
  if (parsed.kind === 'notCommand') return ignored('notACommand');
  if (parsed.kind === 'unsupported') return ignored('commandUnsupported');
  const known = configured(repository, rules);
  if (!known) {
    const errorCode = 'githubCommentCommandRepositoryNotConfigured';
    return { kind: 'rejected', errorCode, number, command: null, job: null };
  }
  const facts: CommandFacts = {
    isBot: isBot(text),
    association: text.author_association,
    isRepositoryConfigured: true,
    hasWorkspaceRoute: known.hasWorkspaceRoute,
  };
  const judged = judgeCommand(facts);
  const refusal = judged.kind === 'rejected' ? judged.errorCode : undefined;
  const errorCode = refusal ?? (parsed.kind === 'invalid' ? parsed.errorCode : null);
  const command: NewCommand = {
    commentId: text.id,
    repositoryKey: known.repositoryKey,
    number,
    actor: text.user.login,
    verb: parsed.kind === 'parsed' ? parsed.command.verb : (parsed.verb ?? ''),
    focus: parsed.kind === 'parsed' ? parsed.command.focus : null,
    status: errorCode === null ? 'queued' : 'rejected',
    errorCode,
  };
  const job: NewJob = {
    kind: 'command',
    key: keyOf(known.repositoryKey, number),
    payload: { commentId: text.id, association: text.author_association, place, threadId },
  };
  if (errorCode === null) return { kind: 'queued', job, number, command };
  // A reply to a program may be answered by it, and so on forever.
  return { kind: 'rejected', errorCode, number, command, job: facts.isBot ? null : job };
}

const isBot = ({ user, performed_via_github_app }: Written): boolean =>
  user.type === 'Bot' || user.login.endsWith('[bot]') || (performed_via_github_app ?? null) !== null;
