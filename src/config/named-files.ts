/** Files of a workspace that its settings start as programs, or hand to programs as code. */
import { createHash } from 'node:crypto';
import { lstatSync, readFileSync, statSync } from 'node:fs';
import { basename, extname, relative, resolve } from 'node:path';
import { isWithin, realPathOr } from '../lib/index.ts';

/** Files by canonical path, each with a hash of its content. */
export type NamedFiles = ReadonlyMap<string, string>;

/** Next step when a file that a hook or server starts has changed. A restart reads the user's own settings; those of a workspace need trust. */
export const startedFileRemedy =
  "Review the file, then run oratorio restart. When the workspace's own settings name the file, run oratorio trust first.";

/** Data that a program changes while it runs: a changed file of this kind is no other program. */
const data = new Set(['.db', '.db3', '.sqlite', '.sqlite3', '.log', '.csv', '.jsonl', '.txt', '.md']);
const maxBytes = 16_777_216;
const maxWords = 2_000;
/** Characters between the words of a shell command. */
const betweenWords = /[\s;&|<>()"'`$={},]+/;
/** Programs that run a file as code; its ending does not matter. */
const interpreter =
  /^(?:(?:ba|da|z|k|mk|a|fi|c|tc)?sh|\.|source|busybox|env|python|pypy|uv|node|nodejs|deno|bun|tsx|ts-node|ruby|perl|php|lua|luajit|rscript|groovy|[gmn]?awk|g?sed|g?make|tclsh|expect|osascript|pwsh|java)[\d.]*$/i;
/** Ends of one command in a text. */
const commandEnds = /[;&|\n()]+/;
/** A command writes this file: it is no program of the command. */
const written = />{1,2}\|?\s*[^\s;&|<>()]+/g;

/**
 * Finds the files of a workspace that commands name: each word of a text, and each text as a whole, is taken for a path. Files that such a
 * file loads itself are not followed. A file that follows an interpreter counts with any ending.
 *
 * @param commands texts, lists and objects of texts
 * @param directories working directories of the commands, relative ones below the workspace; the workspace is always one
 */
export function namedFiles(workspace: string, commands: unknown, directories: readonly string[] = []): NamedFiles {
  const root = realPathOr(workspace);
  const bases = [...new Set([workspace, ...directories.map((each) => resolve(workspace, each))])];
  const words = [
    ...new Set(textsIn(commands).flatMap((text) => [text, ...text.replace(written, ' ').split(betweenWords)])),
  ];
  const scripts = new Set(commandsIn(commands).flatMap((command) => scriptsOf(command, bases)));
  const found = new Map<string, string>();
  for (const word of words.slice(0, maxWords)) {
    const isScript = scripts.has(word);
    if (word === '' || word.length > 4_096 || word.includes('\0') || (data.has(extname(word)) && !isScript)) continue;
    for (const base of bases) {
      const named = resolve(base, word);
      const isOwn = isWithin(workspace, named) || isWithin(root, realPathOr(named));
      const content = isOwn ? contentOf(named, isScript) : undefined;
      if (content !== undefined)
        found.set(isWithin(root, realPathOr(named)) ? relative(root, realPathOr(named)) : named, content);
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

/** Words of each single command: of a text, and of a list, such as a program and its arguments. */
function commandsIn(value: unknown): string[][] {
  if (typeof value === 'string') return value.split(commandEnds).map((text) => text.split(betweenWords));
  if (Array.isArray(value)) return [textsIn(value), ...value.flatMap(commandsIn)];
  if (typeof value !== 'object' || value === null) return [];
  const { command, args, ...rest }: { readonly command?: unknown; readonly args?: unknown } = value;
  return [textsIn([command, args]), ...Object.values({ command, args, ...rest }).flatMap(commandsIn)];
}

/** Files that interpreters among these words run: the first one behind options, and values of options before it. */
function scriptsOf(words: readonly string[], bases: readonly string[]): string[] {
  const scripts: string[] = [];
  let isBehindInterpreter = false;
  for (const [index, word] of words.entries()) {
    const isOption = word.startsWith('-') && word !== '-';
    if (interpreter.test(basename(word))) isBehindInterpreter = true;
    else if (isBehindInterpreter && !isOption && bases.some((base) => isFile(resolve(base, word)))) {
      scripts.push(word);
      isBehindInterpreter = words[index - 1]?.startsWith('-') === true;
    }
  }
  return scripts;
}

function isFile(path: string): boolean {
  try {
    return statSync(path).isFile();
  } catch {
    return false;
  }
}

/**
 * Hash of a file; of a large one its size and its times. Undefined: not a file, or notes of a program: without ending and not executable.
 *
 * @param isScript an interpreter runs it
 */
function contentOf(path: string, isScript: boolean): string | undefined {
  try {
    const stats = statSync(path);
    if (!stats.isFile()) return undefined;
    const { size, mtimeMs, ctimeMs, ino, mode } = stats;
    if (extname(path) === '' && (mode & 0o111) === 0 && !isScript) return undefined;
    const content = size > maxBytes ? `${size} ${mtimeMs} ${ctimeMs} ${ino}` : readFileSync(path);
    return createHash('sha256').update(content).digest('base64url');
  } catch {
    return lstatSync(path, { throwIfNoEntry: false })?.isFile() === true ? 'unreadable' : undefined;
  }
}
