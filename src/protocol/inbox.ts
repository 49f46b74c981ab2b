/** The inbox of the Hub: approvals and questions of all workspaces, and how agent servers report theirs. */
import * as v from 'valibot';
import { defaults } from './defaults.ts';
import { HealthReport } from './health.ts';
import { NotificationRequest } from './hub.ts';
import { QuestionAnswer } from './questions.ts';
import { ApprovalRequest, approvalDecisions } from './tools.ts';

const text = (description: string) => v.pipe(v.string(), v.description(description));

/**
 * `deciding`: an answer is on its way. `unconfirmed`: an answer had no reply; the agent server says whether it counted. `suspended`:
 * the agent server has ended and is being started; answers are refused until then.
 */
export const inboxStates = ['open', 'deciding', 'unconfirmed', 'suspended'] as const;

/** End of a request: by an answer, without one in time, with its turn, or with its agent server. */
export const inboxReasons = ['answered', 'expired', 'turnEnded', 'agentServerEnded'] as const;
export type InboxReason = (typeof inboxReasons)[number];

/** Kinds of requests; readers tolerate ones that they do not know. */
export const inboxKinds = ['approval', 'question', 'quota', 'resume'] as const;

/** One request that waits for a user. */
export const InboxItem = v.object({
  kind: v.pipe(
    v.picklist(inboxKinds),
    v.description('approval: allow or decline; question: `request.question` has its fields.'),
  ),
  workspaceId: text('Id of the workspace: the last part of `page` in its record.'),
  workspacePath: text('Its canonical path.'),
  displayName: text('Last segment of that path.'),
  actionUrl: text('Path on the Hub of the conversation that waits.'),
  state: v.pipe(
    v.picklist(inboxStates),
    v.description(
      'open; deciding: an answer is on its way; unconfirmed: an answer had no reply and may have counted; suspended: its agent server is being started, answer then.',
    ),
  ),
  request: v.pipe(
    ApprovalRequest,
    v.description('Operation to allow, as the agent server sends it to its own clients: the whole command or path.'),
  ),
});
export type InboxItem = v.InferOutput<typeof InboxItem>;

const decision = v.pipe(
  v.picklist(approvalDecisions),
  v.description(
    'accept: allows once. acceptForSession: allows for the rest of the conversation. acceptAlways: allows always in this workspace. decline: declines. cancel: declines and ends the turn. now: continues a turn that waits for a quota.',
  ),
);
const decidedBy = text(
  'Where it was decided: terminal, page, editor, the name of another client, or timeout, policy; agent: its turn or agent server has ended.',
);

/** Body of `POST /v1/inbox/{workspaceId}/{requestId}`. */
export const InboxAnswer = v.pipe(
  v.object({
    decision: v.optional(decision),
    action: v.pipe(
      v.optional(QuestionAnswer.entries.action),
      v.description('Answers a question; use it instead of `decision`.'),
    ),
    content: v.pipe(QuestionAnswer.entries.content, v.description('With action accept: the answers, by field.')),
    client: v.optional(
      v.pipe(
        v.string(),
        v.regex(/^[\x20-\x7e]{1,100}$/, 'expected 1 to 100 printable ASCII characters'),
        v.description(
          'Program through which the user decides, in 1 to 100 printable ASCII characters; default: page or api, by the token.',
        ),
      ),
    ),
  }),
  v.check(({ decision, action }) => (decision === undefined) !== (action === undefined), 'either decision or action'),
);
export type InboxAnswer = v.InferInput<typeof InboxAnswer>;

const reason = v.pipe(
  v.picklist(inboxReasons),
  v.description('answered; expired: no answer in time; turnEnded, agentServerEnded: withdrawn by the agent.'),
);
const decidedAt = text('When the agent server took it, as ISO 8601: the receipt of the answer.');

/** Decision about a request. An agent server of an earlier version names neither time nor reason. */
export const InboxDecision = v.object({
  decision,
  decidedBy,
  decidedAt: v.optional(decidedAt),
  reason: v.optional(reason),
});
export type InboxDecision = v.InferOutput<typeof InboxDecision>;

/** A decided request. */
export const ResolvedRequest = v.object({ requestId: v.string(), ...InboxDecision.entries });
export type ResolvedRequest = v.InferOutput<typeof ResolvedRequest>;

/** One line of the Hub's record of decisions. */
export const InboxHistoryEntry = v.object({
  at: text('When the Hub learnt of it, as ISO 8601.'),
  workspaceId: text('Id of the workspace.'),
  workspacePath: text('Its canonical path.'),
  requestId: text('Id of the request.'),
  threadId: text('The conversation that asked.'),
  tool: text('Name of the tool.'),
  operation: text('Operation in one word.'),
  target: text('The command, path or address: its first 500 characters, without credentials.'),
  decision,
  decidedBy,
  reason,
  token: v.pipe(
    v.nullable(v.string()),
    v.description('Token of the answer that the Hub carried: hub, page or the name of a scoped token; null otherwise.'),
  ),
  remoteAddress: v.pipe(v.nullable(v.string()), v.description('Address that this answer came from.')),
});
export type InboxHistoryEntry = v.InferOutput<typeof InboxHistoryEntry>;

/** Result of an agent server's examination of itself. */
export const FeedHealth = v.object({
  status: v.string(),
  incarnation: v.string(),
  idleMs: v.number(),
  isRestartDue: v.optional(v.boolean()),
  /** Milliseconds until the next report at the latest. Agent servers up to 0.1.0 omit it, and report every `supervise.healthEventMs`. */
  nextMs: v.optional(
    v.pipe(v.number(), v.minValue(defaults.supervise.healthEventMs)),
    defaults.supervise.healthEventMs,
  ),
});
export type FeedHealth = v.InferOutput<typeof FeedHealth>;

/**
 * End of a turn for a person. The Hub adds the workspace and publishes it; an address is not among the fields, because it would
 * open a program.
 */
export const FeedNotification = v.pick(NotificationRequest, ['kind', 'title', 'body', 'severity', 'source']);
export type FeedNotification = v.InferInput<typeof FeedNotification>;

/**
 * Events of `GET /v1/inbox` of an agent server, by name: the state and the report first, then each change of them, notifications,
 * and signs of life. A reader ignores events that it does not know.
 */
export const inboxFeed = {
  /** All that waits, and the last decisions: a reader that was away finds out how its requests ended. */
  state: v.object({ open: v.array(ApprovalRequest), resolved: v.array(ResolvedRequest) }),
  added: ApprovalRequest,
  resolved: ResolvedRequest,
  /** When the feed begins, when a turn begins, and within `nextMs` of each. The one connection of a Hub thereby shows that the server lives. */
  health: FeedHealth,
  /** When the feed begins, and whenever the report changes. Agent servers up to 0.1.0 post it instead. */
  report: HealthReport,
  /** Sent once, to the readers of that moment. */
  notification: FeedNotification,
} as const;
export type InboxFeedEvent = keyof typeof inboxFeed;

/** Path of that feed on the listener of an agent server's WebSocket; `/<requestId>` below it takes an `InboxAnswer`. */
export const inboxFeedPath = '/v1/inbox';
