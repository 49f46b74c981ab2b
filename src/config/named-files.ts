/** Files of a workspace that its settings start as programs, or hand to programs as code. */
import { createHash } from 'node:crypto';
import { lstatSync, readFileSync, realpathSync, statSync } from 'node:fs';
import { extname, isAbsolute, join, relative, resolve, sep } from 'node:path';

/** Files by canonical path, each with a hash of its content. */
export type NamedFiles = ReadonlyMap<string, string>;

/** Data that a program changes while it runs: a changed file of this kind is no other program. */
const data = new Set(['.db', '.db3', '.sqlite', '.sqlite3', '.log', '.csv', '.jsonl', '.txt', '.md']);
const maxBytes = 16_777_216;
const maxWords = 2_000;
/** Characters between the words of a shell command. */
const betweenWords = /[\s;&|<>()"'`$={},]+/;
/** A command writes this file: it is no program of the command. */
const written = />{1,2}\|?\s*[^\s;&|<>()]+/g;

/**
 * Finds the files of a workspace that commands name: each word of a text, and each text as a whole, is taken for a path. Files that such a
 * file loads itself are not followed.
 *
 * @param commands texts, lists and objects of texts
 * @param directories working directories of the commands, relative ones below the workspace; the workspace is always one
 */
export function namedFiles(workspace: string, commands: unknown, directories: readonly string[] = []): NamedFiles {
  const root = realPath(workspace);
  const bases = [...new Set([workspace, ...directories.map((each) => resolve(workspace, each))])];
  const words = [
    ...new Set(textsIn(commands).flatMap((text) => [text, ...text.replace(written, ' ').split(betweenWords)])),
  ];
  const found = new Map<string, string>();
  for (const word of words.slice(0, maxWords)) {
    if (word === '' || word.length > 4_096 || word.includes('\0') || data.has(extname(word))) continue;
    for (const base of bases) {
      const named = resolve(base, word);
      const content = isBelow(workspace, named) || isBelow(root, realPath(named)) ? contentOf(named) : undefined;
      if (content !== undefined)
        found.set(isBelow(root, realPath(named)) ? relative(root, realPath(named)) : named, content);
    }
  }
  return new Map([...found].sort(([one], [other]) => (one < other ? -1 : 1)));
}

/** @returns paths of files that were changed, made or removed between two findings for the same commands */
export function changedFiles(before: NamedFiles, after: NamedFiles): string[] {
  return [...new Set([...before.keys(), ...after.keys()])].filter((path) => before.get(path) !== after.get(path));
}

function textsIn(value: unknown): string[] {
  if (typeof value === 'string') return [value];
  if (Array.isArray(value)) return value.flatMap(textsIn);
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(textsIn) : [];
}

/** Hash of a file; of a large one its size and its times. Undefined: not a file, or notes of a program: without ending and not executable. */
function contentOf(path: string): string | undefined {
  try {
    const stats = statSync(path);
    if (!stats.isFile()) return undefined;
    const { size, mtimeMs, ctimeMs, ino, mode } = stats;
    if (extname(path) === '' && (mode & 0o111) === 0) return undefined;
    const content = size > maxBytes ? `${size} ${mtimeMs} ${ctimeMs} ${ino}` : readFileSync(path);
    return createHash('sha256').update(content).digest('base64url');
  } catch {
    return lstatSync(path, { throwIfNoEntry: false })?.isFile() === true ? 'unreadable' : undefined;
  }
}

function isBelow(directory: string, path: string): boolean {
  const below = relative(directory, path);
  return below !== '' && below !== '..' && !below.startsWith(`..${sep}`) && !isAbsolute(below);
}

function realPath(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return join(path);
  }
}
