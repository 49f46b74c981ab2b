/**
 * Decides which test files share a process. Half of them only call functions, and most of their work is to start Node, tap and the
 * modules that they test.
 */
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Durations } from './test-order.ts';
import { root } from './toolchain.mjs';

/** Files that one process runs. */
export interface TestUnit {
  /** The only file, or the folder of several: `test/lib (together)`. */
  readonly name: string;
  /** Named from the root of the checkout. */
  readonly files: readonly string[];
}

/**
 * Words that keep a file from sharing a process: what a process has once, or counts; and a browser or a Hub, beside which the start
 * of one process is little.
 */
const needsOwnProcess = new RegExp(
  [
    String.raw`\bprocess\.(?:chdir|emit\w*|exit|exitCode|kill|moduleLoadList|on|once|off|set\w+|umask)\b`,
    String.raw`\bprocess\.env(?:\.\w+|\[[^\]]+\]) = `,
    String.raw`\bdelete process\.env\b`,
    String.raw`\b(?:globalThis|getActiveResourcesInfo|memoryUsage|worker_threads|scene|\w+(?:Hub|Browser)|npm)\b`,
    String.raw`\bt\.(?:mock|intercept|capture)`,
  ].join('|'),
);

/** A file that is known to take longer has a core for itself sooner when it has a process for itself. */
const mostSeconds = 8;

/**
 * Divides the files: short ones of a folder that leave their process as it was share one, all others have one of their own.
 * @param seconds by file, of earlier runs
 * @param alone files that run while no other does
 */
export function testUnits(
  files: readonly string[],
  seconds: Durations,
  alone: readonly string[] = [],
): readonly TestUnit[] {
  const units = Map.groupBy(files, (file) => (canShare(file, seconds) && !alone.includes(file) ? dirname(file) : file));
  return [...units].map(([name, inIt]) =>
    inIt.length === 1 ? { name: inIt[0] ?? name, files: inIt } : { name: `${name} (together)`, files: inIt },
  );
}

function canShare(file: string, seconds: Durations): boolean {
  return (seconds[file] ?? 0) <= mostSeconds && !needsOwnProcess.test(readFileSync(join(root, file), 'utf8'));
}
