/** Programs of the user that run at moments of a conversation and may block the next step. The runtime calls them. */
export { type HookInput, type HookOutcome, Hooks } from './hooks.ts';
