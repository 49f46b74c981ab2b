/** Approvals and questions of all workspaces: what their agent servers report, and the answers to it. */
export { type AnswerOutcome, answerRequest } from './agent-server.ts';
export { DecisionLog } from './decision-log.ts';
export { inboxFollower } from './follow.ts';
export { type AnswerSender, alreadyDecided, chatPath, Inbox, type InboxWorkspace } from './inbox.ts';
