/**
 * The chat-completions API: requests to turns of the runtime, their events to answers as client libraries want them. Used by
 * a server of its own (`openChatServer`), or by one with other routes, too (`chatRoutes` behind
 * `chatGuard`, errors of `isChatPath` by `chatErrorBody`). Never here: the work of a turn, tools, model providers, listening.
 */
export { type ChatErrorName, chatErrorBody, chatErrors } from './errors.ts';
export { chatGuard, isChatPath } from './guard.ts';
export type { ChatOptions, ChatTiming } from './options.ts';
export { chatRoutes } from './routes.ts';
export { openChatServer } from './server.ts';
