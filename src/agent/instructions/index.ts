/**
 * Instructions for the model: the system prompt in parts, and the `AGENTS.md` files of user and project. Never here: conversations,
 * tools, approvals.
 */
export { nestedInstructionsFor } from './agents-md.ts';
export { NestedInstructions } from './nested.ts';
export { brief, describeCommands, type Surroundings } from './surroundings.ts';
export { ownSystemPrompt, type PromptInput, type PromptPart, promptParts, systemPrompt } from './system-prompt.ts';
