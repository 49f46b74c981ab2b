import { join, resolve } from 'node:path';
import { type HeadedText, HeadReader, readHead } from './head.ts';
import { type LibraryPlace, namesIn, readFileIn } from './places.ts';

/** A skill, by its head. After https://agentskills.io/specification. */
export interface Skill {
  readonly name: string;
  readonly description: string;
  /** Path of the skill's `SKILL.md`. Absolute. */
  readonly path: string;
}

/** A skill or a command that is left out. */
export interface LibraryProblem {
  readonly path: string;
  /** Completes "<path>: …". */
  readonly problem: string;
}

const nameWords = /^(?!.*--)[a-z0-9](?:[a-z0-9-]{0,62}[a-z0-9])?$/;
const maxDescription = 1_024;
const fileName = 'SKILL.md';

interface FoundSkill extends Skill {
  readonly place: LibraryPlace;
}

/** All skills by name: one of the workspace before one of the user with the same name. */
export function findSkills(places: readonly LibraryPlace[]): {
  readonly skills: ReadonlyMap<string, Skill>;
  readonly problems: readonly LibraryProblem[];
} {
  const skills = new Map<string, FoundSkill>();
  const problems: LibraryProblem[] = [];
  for (const place of places) {
    const heads = new HeadReader();
    for (const name of namesIn(place)) {
      const found = skillIn(place, name, heads);
      if (found && 'problem' in found) problems.push(found);
      else if (found && !skills.has(name)) skills.set(name, found);
    }
  }
  return { skills, problems };
}

/** One skill by its name. */
export function findSkill(places: readonly LibraryPlace[], name: string): FoundSkill | undefined {
  if (!nameWords.test(name)) return undefined;
  for (const place of places) {
    const found = skillIn(place, name, new HeadReader());
    if (found && !('problem' in found)) return found;
  }
  return undefined;
}

function skillIn(place: LibraryPlace, name: string, heads: HeadReader): FoundSkill | LibraryProblem | undefined {
  const path = join(place.path, name, fileName);
  const read = readFileIn(place, path);
  if (!read) return undefined;
  const described = 'problem' in read ? read.problem : describe(name, heads.read(read.text));
  return typeof described === 'string'
    ? { path, problem: described }
    : { name, description: described.description, path, place };
}

/** @returns the problem as a text */
function describe(directory: string, headed: HeadedText | string): { readonly description: string } | string {
  if (typeof headed === 'string') return headed;
  const { name, description } = headed.head;
  if (typeof name !== 'string' || !nameWords.test(name)) return 'its name must be 1 to 64 of a–z, 0–9 and single -';
  if (name !== directory) return `its name is ${name}, its directory ${directory}: they must be equal`;
  if (typeof description !== 'string' || description.trim() === '') return 'it has no description';
  if (description.length > maxDescription) return `its description is longer than ${maxDescription} characters`;
  return { description: description.trim().replace(/\s+/g, ' ') };
}

/** Body of a skill; undefined: it is gone. */
export function skillBody({ place, path }: FoundSkill): string | undefined {
  const read = readFileIn(place, path);
  if (!read || 'problem' in read) return undefined;
  const headed = readHead(read.text);
  return typeof headed === 'string' ? undefined : headed.body;
}

/** Another file of a skill. @param file relative to its directory */
export function skillFile(
  { place, path }: FoundSkill,
  file: string,
): { readonly text: string } | { readonly problem: string } {
  const directory = resolve(path, '..');
  const read = readFileIn({ path: directory, within: place.within }, resolve(directory, file));
  return read ?? { problem: 'is not a file of this skill' };
}

/** Characters that a list may take in a prompt. */
const maxListed = 8_000;

/** List for a prompt. Over the limit descriptions are shortened evenly, then entries are left out, with their number. */
export function listDescribed(skills: readonly Pick<Skill, 'name' | 'description'>[]): string {
  const lines = (longest: number) =>
    skills.map(
      ({ name, description }) =>
        `- ${name}: ${description.length > longest ? `${description.slice(0, longest)}…` : description}`,
    );
  const lengthOf = (longest: number) => lines(longest).join('\n').length;
  let longest = maxDescription;
  while (longest > 40 && lengthOf(longest) > maxListed) longest = Math.floor(longest / 2);
  const all = lines(longest);
  let count = all.length;
  while (count > 0 && all.slice(0, count).join('\n').length > maxListed) count -= 1;
  const left = all.length - count;
  return [...all.slice(0, count), ...(left > 0 ? [`(${left} more are left out.)`] : [])].join('\n');
}
