/**
 * Decides which test files share a process. Half of them only call functions, and most of their work is to start Node, tap and the
 * modules that they test.
 */
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { KnownWork } from './test-order.ts';
import { root } from './toolchain.mjs';

/** Files that one process runs. */
export interface TestUnit {
  /** The only file, or the folder of several: `test/lib (together)`. */
  readonly name: string;
  /** Named from the root of the checkout. */
  readonly files: readonly string[];
}

/** Matches the end of the name of a unit of several files. */
export const isTogether = / \(together\)$/;

/**
 * Words that keep a file from sharing a process: parts that a process has once, or counts; and a browser or a Hub, next to which
 * the start of one process costs little.
 */
const needsOwnProcess = new RegExp(
  [
    String.raw`\bprocess\.(?:chdir|emit\w*|exit|exitCode|kill|moduleLoadList|on|once|off|set\w+|umask)\b`,
    String.raw`\bprocess\.env(?:\.\w+|\[[^\]]+\]) = `,
    String.raw`\bdelete process\.env\b`,
    String.raw`\b(?:globalThis|getActiveResourcesInfo|memoryUsage|worker_threads|t\.(?:mock|intercept|capture))\b`,
    String.raw`\b(?:start|spawn|launch)\w*(?:Hub|Browser)\b|scene\.ts'`,
  ].join('|'),
);

/** Matches a file that drives the page: it has a stage, whose module starts a browser, which such files of one process share. */
const drivesPage = /import \{[^}]*\b(?:stage|\w+Stage)\b[^}]*\} from '\.\/[\w-]+\.ts'/;

/**
 * Such files in one process: two thirds of all. The start of one more process, with a browser that has to fetch and compile the
 * page, is two seconds of processor time. All in one would take nearly as long as the run, and two halves would begin it side by
 * side, where each browser drives the data of the other out of the caches.
 */
const mostOfPage = 15;

/** A file that is known to take longer has a core for itself sooner when it has a process for itself. */
const mostSeconds = 8;

/**
 * Divides the files: short ones of a folder that do not change their process share one, some that drive the page share one and
 * its browser, all others have one of their own.
 * @param work of earlier runs
 * @param alone files that run while no other does
 */
export function testUnits(
  files: readonly string[],
  work: KnownWork,
  alone: readonly string[] = [],
): readonly TestUnit[] {
  let ofPage = 0;
  const units = Map.groupBy(files, (file) => {
    if (alone.includes(file)) return file;
    if (!drivesPage.test(textOf(file))) return canShare(file, work) ? dirname(file) : file;
    ofPage += 1;
    return `${dirname(file)}/pages-${Math.ceil(ofPage / mostOfPage)}`;
  });
  return [...units].map(([name, inIt]) =>
    inIt.length === 1 ? { name: inIt[0] ?? name, files: inIt } : { name: `${name} (together)`, files: inIt },
  );
}

const textOf = (file: string): string => readFileSync(join(root, file), 'utf8');

function canShare(file: string, work: KnownWork): boolean {
  return (work[file]?.seconds ?? 0) <= mostSeconds && !needsOwnProcess.test(textOf(file));
}
