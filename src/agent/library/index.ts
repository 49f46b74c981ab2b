/**
 * Skills and prompt commands: Markdown files of a user and a workspace. Files of a workspace are untrusted: they are read within bounds, and
 * grant nothing. Never here: conversations, approvals.
 */
export { type AgentType, builtinAgentTypes } from './agents.ts';
export { type PromptCommand, splitWords } from './commands.ts';
export { Library } from './library.ts';
export { createSkillTool, skillToolName } from './skill-tool.ts';
export { type LibraryProblem, listDescribed, type Skill } from './skills.ts';
