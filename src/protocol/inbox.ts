/** The inbox of the Hub: approvals and questions of all workspaces, and how agent servers report theirs. */
import * as v from 'valibot';
import { ApprovalRequest, approvalDecisions } from './tools.ts';

const text = (description: string) => v.pipe(v.string(), v.description(description));

/** One approval or question that waits for a user. */
export const InboxItem = v.object({
  workspaceId: text('Id of the workspace: the last part of `page` in its record.'),
  workspacePath: text('Its canonical path.'),
  displayName: text('Last segment of that path.'),
  actionUrl: text('Path on the Hub of the conversation that waits.'),
  request: v.pipe(
    ApprovalRequest,
    v.description('What is to be allowed, as the agent server asks its own clients: the whole command or path.'),
  ),
});
export type InboxItem = v.InferOutput<typeof InboxItem>;

const decision = v.pipe(
  v.picklist(approvalDecisions),
  v.description(
    'accept: this once. acceptForSession: as long as the conversation. acceptAlways: as long as the workspace. decline; cancel: declines and ends the turn.',
  ),
);
const decidedBy = text(
  'Where it was decided: terminal, page, editor, the name of another client, or timeout, policy, withdrawn.',
);

/** Body of `POST /v1/inbox/{workspaceId}/{requestId}`. */
export const InboxAnswer = v.object({
  decision,
  client: v.optional(text('Program through which the user decides; default: page or api, by the token.')),
});
export type InboxAnswer = v.InferInput<typeof InboxAnswer>;

/** Decision about a request. */
export const InboxDecision = v.object({ decision, decidedBy });
export type InboxDecision = v.InferOutput<typeof InboxDecision>;

/** A decided request. */
export const ResolvedRequest = v.object({ requestId: v.string(), ...InboxDecision.entries });
export type ResolvedRequest = v.InferOutput<typeof ResolvedRequest>;

/** Events of `GET /v1/inbox` of an agent server, by name: the state first, then each change of it. */
export const inboxFeed = {
  /** All that waits, and the last decisions: a reader that was away finds out how its requests ended. */
  state: v.object({ open: v.array(ApprovalRequest), resolved: v.array(ResolvedRequest) }),
  added: ApprovalRequest,
  resolved: ResolvedRequest,
} as const;
export type InboxFeedEvent = keyof typeof inboxFeed;

/** Path of that feed on the listener of an agent server's WebSocket; `/<requestId>` below it takes an `InboxAnswer`. */
export const inboxFeedPath = '/v1/inbox';

const places: Readonly<Record<string, string>> = {
  'oratorio-cli': 'terminal',
  'oratorio-acp': 'editor',
  'oratorio-page': 'page',
};

/** The place of a client, in the words of `decidedBy`. */
export const placeOf = (client: string): string => places[client] ?? client;
