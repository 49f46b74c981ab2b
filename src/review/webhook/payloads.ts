/**
 * Fields of GitHub's payloads that the intake reads, and nothing more: a field that is not named here may be missing, new or of any
 * type. A payload's facts about a pull request are only a hint: every action reads the pull request again first.
 */
import * as v from 'valibot';

const wholeNumber = v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(Number.MAX_SAFE_INTEGER));
const word = v.pipe(v.string(), v.maxLength(1_000));
const account = v.object({ login: word, type: v.optional(word, '') });
const sender = v.object({ login: word });
const repository = v.object({
  full_name: v.pipe(v.string(), v.nonEmpty(), v.maxLength(300)),
  html_url: v.optional(v.pipe(v.string(), v.maxLength(2_000))),
});

/** Fields of every payload, also of one that is ignored: a field of another type counts as absent. */
export const Envelope = v.object({
  action: v.fallback(v.optional(v.pipe(v.string(), v.maxLength(100))), undefined),
  sender: v.fallback(v.optional(sender), undefined),
  repository: v.fallback(v.optional(repository), undefined),
});
export type Envelope = v.InferOutput<typeof Envelope>;

const written = {
  id: wholeNumber,
  author_association: v.optional(word, 'NONE'),
  user: account,
  performed_via_github_app: v.nullish(v.record(v.string(), v.unknown())),
};
const body = v.pipe(v.string(), v.maxLength(300_000));
const numbered = v.object({ number: wholeNumber });

export const IssueComment = v.object({
  repository,
  issue: v.object({ number: wholeNumber, pull_request: v.optional(v.record(v.string(), v.unknown())) }),
  comment: v.object({ ...written, body }),
});

/** Comment on lines of a pull request. `in_reply_to_id` is the first comment of its thread. */
export const ReviewComment = v.object({
  repository,
  pull_request: numbered,
  comment: v.object({ ...written, body, in_reply_to_id: v.nullish(wholeNumber) }),
});

/** Review of a pull request. Its body is null when only its comments have text. */
export const SubmittedReview = v.object({
  repository,
  pull_request: numbered,
  review: v.object({ ...written, body: v.nullish(body, '') }),
});

/** Fields of a text that identify its author. */
export type Written = v.InferOutput<typeof IssueComment>['comment'];

export const PullRequest = v.object({
  repository,
  pull_request: v.object({ number: wholeNumber }),
  changes: v.optional(v.object({ base: v.optional(v.unknown()), title: v.optional(v.unknown()) })),
});

export const CheckRun = v.object({
  repository,
  check_run: v.object({
    head_sha: v.pipe(v.string(), v.hexadecimal(), v.minLength(40), v.maxLength(64)),
    external_id: v.nullish(word),
    app: v.nullish(v.object({ id: wholeNumber })),
    pull_requests: v.optional(v.array(v.object({ number: wholeNumber })), []),
  }),
});

export const Installation = v.object({
  installation: v.object({ id: wholeNumber, account: v.object({ login: word }) }),
});

export const RepositoryChange = v.object({ repository });

const time = v.object({ updated_at: v.string() });
/** Payload that names a moment or a head: GitHub sends its body once. */
export const Stamped = v.union([
  v.object({ pull_request: time }),
  v.object({ pull_request: v.object({ head: v.object({ sha: v.string() }) }) }),
  v.object({ check_run: v.object({ check_suite: time }) }),
]);
