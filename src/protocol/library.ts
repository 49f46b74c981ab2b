import * as v from 'valibot';

/** A skill, without its body. */
export const SkillInfo = v.object({ name: v.string(), description: v.string(), path: v.string() });

/** A prompt command. */
export const PromptCommandInfo = v.object({
  name: v.string(),
  description: v.string(),
  argumentHint: v.optional(v.string()),
  /** Empty for a command of an external agent. */
  path: v.string(),
  /** External agent that the command belongs to: the command is sent as text, `/name` first. */
  agent: v.optional(v.string()),
});
export type PromptCommandInfo = v.InferOutput<typeof PromptCommandInfo>;

/** A file with a skill or a command that is left out. */
export const LibraryProblem = v.object({ path: v.string(), problem: v.string() });
