/** Programs of the user that run at moments of a conversation and may block what comes next. The runtime calls them. */
export { type HookInput, type HookOutcome, Hooks } from './hooks.ts';
