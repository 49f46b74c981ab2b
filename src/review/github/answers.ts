/** Fields of GitHub's answers that we read; all others may have any value. */
import * as v from 'valibot';

const User = v.nullish(v.object({ login: v.string(), type: v.optional(v.string()) }));
const time = v.pipe(
  v.string(),
  v.check((text) => !Number.isNaN(Date.parse(text)), 'a time'),
);
const text = v.nullish(v.string());

export const PullAnswer = v.object({
  number: v.number(),
  title: v.string(),
  body: text,
  user: User,
  author_association: v.string(),
  state: v.picklist(['open', 'closed']),
  merged_at: text,
  draft: v.optional(v.boolean(), false),
  labels: v.array(v.object({ name: v.string() })),
  html_url: v.string(),
  updated_at: time,
  base: v.object({ ref: v.string(), sha: v.string(), repo: v.object({ id: v.number() }) }),
  head: v.object({ ref: v.string(), sha: v.string(), repo: v.nullish(v.object({ id: v.number() })) }),
});
export type PullAnswer = v.InferOutput<typeof PullAnswer>;
export const PullList = v.array(PullAnswer);

export const FileList = v.array(v.object({ filename: v.string(), status: v.string(), patch: v.optional(v.string()) }));

export const ReviewAnswer = v.object({
  id: v.number(),
  user: User,
  body: text,
  state: v.string(),
  html_url: v.string(),
});
export type ReviewAnswer = v.InferOutput<typeof ReviewAnswer>;
export const ReviewList = v.array(ReviewAnswer);

/** A comment on a line or a file, or in the conversation. */
export const CommentAnswer = v.object({
  id: v.number(),
  user: User,
  body: text,
  html_url: v.string(),
  pull_request_review_id: v.nullish(v.number()),
  subject_type: text,
});
export type CommentAnswer = v.InferOutput<typeof CommentAnswer>;
export const CommentList = v.array(CommentAnswer);

export const CheckRunAnswer = v.object({
  id: v.number(),
  external_id: text,
  html_url: text,
  app: v.nullish(v.object({ id: v.number() })),
});
export type CheckRunAnswer = v.InferOutput<typeof CheckRunAnswer>;
export const CheckRunList = v.object({ check_runs: v.array(CheckRunAnswer) });

export const ReactionAnswer = v.object({ id: v.number() });
export const PermissionAnswer = v.object({ permission: v.string() });

const Permissions = v.record(v.string(), v.string());
export const InstallationAnswer = v.object({
  id: v.number(),
  permissions: v.optional(Permissions, {}),
  suspended_at: text,
});
export const TokenAnswer = v.object({ token: v.pipe(v.string(), v.nonEmpty()), expires_at: time });
/** Delivery ids are larger than a double holds exactly. */
const bigId = v.pipe(
  v.union([v.number(), v.bigint()]),
  v.transform((id) => String(id)),
);
export const DeliveryList = v.array(
  v.object({
    id: bigId,
    guid: v.string(),
    delivered_at: time,
    redelivery: v.boolean(),
    status: v.string(),
    status_code: v.number(),
    event: v.string(),
    action: text,
  }),
);
export type DeliveryAnswer = v.InferOutput<typeof DeliveryList>[number];

export const ThreadsAnswer = v.object({
  repository: v.object({
    pullRequest: v.nullable(
      v.object({
        reviewThreads: v.object({
          pageInfo: v.object({ hasNextPage: v.boolean(), endCursor: v.nullable(v.string()) }),
          nodes: v.array(
            v.object({
              id: v.string(),
              isResolved: v.boolean(),
              comments: v.object({
                nodes: v.array(v.object({ body: v.string(), author: v.nullable(v.object({ login: v.string() })) })),
              }),
            }),
          ),
        }),
      }),
    ),
  }),
});
