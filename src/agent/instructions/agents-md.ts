import { dirname, join, relative, resolve, sep } from 'node:path';
import { defaults } from '../../protocol/index.ts';
import type { Instructions } from '../thread-store.ts';
import { isWithin, type ReadText } from '../tools/index.ts';

/** Name of a file with instructions for agents, by the convention of agents.md. */
const fileName = 'AGENTS.md';

export interface InstructionPlaces {
  /** The user's home of Oratorio. Absolute. */
  readonly home: string;
  /** Canonical and absolute. */
  readonly workspacePath: string;
}

/**
 * Reads the instructions that hold from the start: those of the user, then those of the workspace's root. Both share one budget; the
 * user's come first in it.
 */
export async function rootInstructions(read: ReadText, places: InstructionPlaces): Promise<readonly Instructions[]> {
  const { home, workspacePath } = places;
  const { rootBytes } = defaults.agent.instructions;
  const own = await read.ofUser(join(home, fileName), rootBytes);
  const left = rootBytes - Buffer.byteLength(own?.text ?? '');
  const root = await read.inWorkspace(fileName, workspacePath, Math.max(0, left));
  return [
    ...(own && saysAnything(own) ? [{ path: join(home, fileName), text: own.text, isCut: own.isCut }] : []),
    ...(root && saysAnything(root) ? [{ path: fileName, text: root.text, isCut: root.isCut }] : []),
  ];
}

/** Whether a file has a text or is cut off: the reader of a cut file can request the rest. */
const saysAnything = ({ text, isCut }: Pick<Instructions, 'text' | 'isCut'>): boolean => isCut || text.trim() !== '';

/**
 * Paths of the files that may hold instructions for `place`, outermost first, relative to the workspace, with `/`. The root's is not
 * among them.
 *
 * @param place file or directory, as a model wrote it
 */
export function nestedPaths(place: string, workspacePath: string): readonly string[] {
  const path = resolve(workspacePath, place);
  if (!isWithin(workspacePath, path)) return [];
  const parts = relative(workspacePath, path).split(sep, maxDepth).filter(Boolean);
  // The last part may be a directory itself: a file of this name in a file cannot be read.
  return parts.map((_, index) => [...parts.slice(0, index + 1), fileName].join('/'));
}

/** Most levels of directories below the workspace that are searched for instructions. */
const maxDepth = 32;

/** Reads a nested file with instructions. @param path of `nestedPaths` */
export async function nestedInstructions(
  read: ReadText,
  path: string,
  workspacePath: string,
): Promise<Instructions | undefined> {
  const found = await read.inWorkspace(path, workspacePath, defaults.agent.instructions.nestedBytes);
  // The root's file by another name, or a link to another directory: it holds where it lies.
  const isThere = found?.path === join(workspacePath, dirname(path), fileName);
  return isThere && found.text.trim() !== '' ? { path, text: found.text, isCut: found.isCut } : undefined;
}

/** Reads all instructions that hold for a directory besides the root's, outermost first. */
export async function nestedInstructionsFor(
  read: ReadText,
  directory: string,
  workspacePath: string,
): Promise<readonly Instructions[]> {
  const paths = nestedPaths(directory, workspacePath);
  const found = await Promise.all(paths.map((path) => nestedInstructions(read, path, workspacePath)));
  return found.filter((each) => each !== undefined);
}

/** Instructions as a model is shown them. */
export function instructionsBlock({ path, text, isCut }: Instructions): string {
  const cut = isCut ? '\n[The file is longer; the rest is left out.]' : '';
  // An untrusted text must not end the block.
  const whole = text.trim().replaceAll('</instructions', '< /instructions');
  return `${openingTag(path)}\n${whole}${cut}\n</instructions>`;
}

/** A repository chooses the names of its directories: they end neither the tag nor the block. */
const openingTag = (path: string): string =>
  `<instructions path="${path.replace(/["<>\p{Cc}]/gu, (character) => `&#${character.codePointAt(0)};`)}">`;

/** Whether a text shows the instructions of `path`. */
export const showsInstructions = (text: string, path: string): boolean => text.includes(openingTag(path));
