/** Approvals and questions of all workspaces: what their agent servers report, and the answers to it. */
export { type AnswerOutcome, answerRequest } from './agent-server.ts';
export { followInbox } from './follow.ts';
export { alreadyDecided, chatPath, Inbox } from './inbox.ts';
