/** Orders test files by how long they took, so that no long file runs alone at the end. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { root } from './toolchain.mjs';

/** Seconds by test file. */
export type Durations = Readonly<Record<string, number>>;

/** Of the last runs in this checkout. */
const measuredFile = join(root, 'node_modules', '.cache', 'oratorio-test-durations.json');
/** For a fresh clone: files that take long. */
const committedFile = join(root, 'scripts', 'test-durations.json');

/** Longest first; files without a duration follow in alphabetical order. */
export function longestFirst(files: readonly string[], durations: Durations): readonly string[] {
  const secondsOf = (file: string): number => durations[file] ?? 0;
  return files.toSorted((a, b) => secondsOf(b) - secondsOf(a) || (a < b ? -1 : 1));
}

/** Reads what is known: this checkout's own measurements before those of the repository. */
export function readDurations(): Durations {
  return { ...readFrom(committedFile), ...readFrom(measuredFile) };
}

/** Stores measurements for the next run, beside those of files that did not run this time. */
export function writeDurations(durations: Durations): void {
  mkdirSync(dirname(measuredFile), { recursive: true });
  writeFileSync(measuredFile, JSON.stringify({ ...readFrom(measuredFile), ...durations }, undefined, 2));
}

/** A missing or damaged file only costs the order. */
function readFrom(file: string): Durations {
  try {
    const known = JSON.parse(readFileSync(file, 'utf8')) as Record<string, unknown>;
    return Object.fromEntries(
      Object.entries(known).filter((entry): entry is [string, number] => typeof entry[1] === 'number'),
    );
  } catch {
    return {};
  }
}
