/** Approvals and questions of all workspaces: the reports of their agent servers, and the answers to them. */
export { type AnswerOutcome, addressOf, answerRequest } from './agent-server.ts';
export { DecisionLog } from './decision-log.ts';
export { inboxFollower } from './follow.ts';
export { type AnswerSender, alreadyDecided, chatPath, Inbox, type InboxWorkspace } from './inbox.ts';
