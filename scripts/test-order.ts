/** Orders test files by how long they took, so that no long file runs alone at the end. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { root } from './toolchain.mjs';

/** Time and processor time of a test file, or of several in one process. */
export interface Work {
  /** From its start to its end. */
  readonly seconds: number;
  /** Absent where the system does not count it. Includes no process that is still running at the end. */
  readonly cpuSeconds?: number;
}

/** Work by the name of a test file or of several. */
export type KnownWork = Readonly<Record<string, Work>>;

/** Measurements of the last runs in this checkout. */
const measuredFile = join(root, 'node_modules', '.cache', 'oratorio-test-work.json');
/** For a fresh clone: files that take long, those that drive the page with their browser. */
const committedFile = join(root, 'scripts', 'test-work.json');

/** Longest first; files of unknown work follow in alphabetical order. */
export function longestFirst(files: readonly string[], work: KnownWork): readonly string[] {
  const secondsOf = (file: string): number => work[file]?.seconds ?? 0;
  return files.toSorted((a, b) => secondsOf(b) - secondsOf(a) || (a < b ? -1 : 1));
}

/** Share of a core that a file takes, from 0 to 1: the part of its time without waiting. 1 where that is not known. */
export function coreShare({ seconds, cpuSeconds = seconds }: Work = { seconds: 0 }): number {
  return seconds === 0 ? 1 : Math.min(1, cpuSeconds / seconds);
}

/** Reads the measurements: those of this checkout before those of the repository. */
export function readWork(): KnownWork {
  return { ...readFrom(committedFile), ...readFrom(measuredFile) };
}

/** Stores measurements for the next run, beside those of files that did not run this time. */
export function writeWork(work: KnownWork): void {
  mkdirSync(dirname(measuredFile), { recursive: true });
  writeFileSync(measuredFile, JSON.stringify({ ...readFrom(measuredFile), ...work }, undefined, 2));
}

/** A missing or damaged file only costs the order. */
function readFrom(file: string): KnownWork {
  try {
    const known = JSON.parse(readFileSync(file, 'utf8')) as Record<string, Partial<Work> | null>;
    return Object.fromEntries(
      Object.entries(known).filter((entry): entry is [string, Work] => typeof entry[1]?.seconds === 'number'),
    );
  } catch {
    return {};
  }
}
