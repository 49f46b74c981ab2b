import { join } from 'node:path';
import * as v from 'valibot';
import { type HeadedText, HeadReader } from './head.ts';
import { type LibraryPlace, namesIn, readFileIn } from './places.ts';
import type { LibraryProblem } from './skills.ts';

/** A type of sub-agents that the user or the project has defined. */
export interface AgentType {
  readonly name: string;
  readonly description: string;
  /** Absolute. */
  readonly path: string;
  /** Added to the system prompt of its sub-agents. */
  readonly instructions: string;
  /** Names of its tools, of those that its parent has; absent: all of those. */
  readonly tools?: readonly string[] | undefined;
  /** Only from a file of the user: a repository must not choose a model that the user pays for. */
  readonly model?: string | undefined;
  /** Sub-agents of this type work in git worktrees of their own. */
  readonly worktree?: boolean | undefined;
}

const ending = '.md';
const nameWords = /^[a-z0-9](?:[a-z0-9-]{0,62}[a-z0-9])?$/;
/** Types of the product, which no file replaces. */
export const builtinAgentTypes = ['explore', 'work'] as const;

const maxDescription = 1_024;

const Head = v.object({
  description: v.pipe(
    v.optional(v.string('its description must be a text'), ''),
    v.trim(),
    v.nonEmpty('it has no description'),
    v.maxLength(maxDescription, `its description is longer than ${maxDescription} characters`),
  ),
  tools: v.optional(v.array(v.string('its tools must be a list of names'), 'its tools must be a list of names')),
  model: v.optional(v.string('its model must be a text')),
  worktree: v.optional(v.boolean('its worktree must be true or false')),
});

/** All types by name: one of the workspace before one of the user with the same name. */
export function findAgentTypes(places: readonly LibraryPlace[]): {
  readonly types: ReadonlyMap<string, AgentType>;
  readonly problems: readonly LibraryProblem[];
} {
  const types = new Map<string, AgentType>();
  const problems: LibraryProblem[] = [];
  for (const place of places) {
    const heads = new HeadReader();
    for (const file of namesIn(place)) {
      if (!file.endsWith(ending)) continue;
      const name = file.slice(0, -ending.length);
      const path = join(place.path, file);
      const read = readFileIn(place, path);
      if (!read) continue;
      const found =
        'problem' in read
          ? read.problem
          : typeOf({ name, path, headed: heads.read(read.text), isOwn: place.within === undefined });
      if (typeof found === 'string') problems.push({ path, problem: found });
      else if (!types.has(name)) types.set(name, found);
    }
  }
  return { types, problems };
}

interface FoundFile {
  readonly name: string;
  readonly path: string;
  readonly headed: HeadedText | string;
  /** The file belongs to the user, not to the repository. */
  readonly isOwn: boolean;
}

/** @returns the problem as a text */
function typeOf({ name, path, headed, isOwn }: FoundFile): AgentType | string {
  if (!nameWords.test(name)) return 'its name must be 1 to 64 of a–z, 0–9 and -';
  if (builtinAgentTypes.some((known) => known === name)) return `${name} is a type of Oratorio`;
  if (typeof headed === 'string') return headed;
  if (headed.body === '') return 'it has no instructions';
  const head = v.safeParse(Head, headed.head);
  if (!head.success) return head.issues[0].message;
  const { description, tools, model, worktree } = head.output;
  return {
    ...{ name, path, instructions: headed.body, description: description.replace(/\s+/g, ' ') },
    ...(tools && { tools }),
    ...(worktree !== undefined && { worktree }),
    ...(isOwn && model !== undefined && { model }),
  };
}
