/** The patterns that older texts still match: a number for each room and pattern, which may only fall. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../toolchain.mjs';
import type { Finding } from './findings.ts';

/** Numbers of findings by room and id of a pattern. Absent: none. */
export type Counts = Readonly<Record<string, Readonly<Record<string, number>>>>;

const path = join(root, 'scripts', 'style', 'budget.json');

export const readBudget = (): Counts => JSON.parse(readFileSync(path, 'utf8'));
export const writeBudget = (budget: Counts): void => writeFileSync(path, `${JSON.stringify(budget, null, 2)}\n`);

/** Room of a file: a folder of `src`, another folder of the root, or `documents`. @param file from the root */
export function roomOf(file: string): string {
  if (file.endsWith('.md')) return 'documents';
  const [top = '', room = ''] = file.split('/');
  return top === 'src' ? `src/${room.replace(/\.tsx?$/, '')}` : top;
}

export function countsOf(findings: readonly Finding[]): Counts {
  const counts: Record<string, Record<string, number>> = {};
  for (const { file, id } of findings) {
    const room = roomOf(file);
    const numbers = counts[room] ?? {};
    counts[room] = { ...numbers, [id]: (numbers[id] ?? 0) + 1 };
  }
  return counts;
}

/** Findings of each room and pattern that exceed the budget, by a line that names both numbers. */
export function beyondBudget(findings: readonly Finding[], budget: Counts): Map<string, Finding[]> {
  const exceeded = Object.entries(countsOf(findings)).flatMap(([room, numbers]) =>
    Object.entries(numbers)
      .filter(([id, number]) => number > (budget[room]?.[id] ?? 0))
      .map(([id, number]) => {
        const found = findings.filter((finding) => roomOf(finding.file) === room && finding.id === id);
        return [`${room} has ${number} findings of ${id}, and may have ${budget[room]?.[id] ?? 0}:`, found] as const;
      }),
  );
  return new Map(exceeded);
}

/** The budget, each number lowered to that of the findings. */
export function lowered(budget: Counts, findings: readonly Finding[]): Counts {
  const counts = countsOf(findings);
  const rooms = Object.entries(budget).flatMap(([room, numbers]) => {
    const left = Object.entries(numbers)
      .map(([id, number]) => [id, Math.min(number, counts[room]?.[id] ?? 0)] as const)
      .filter(([, number]) => number > 0);
    return left.length > 0 ? [[room, Object.fromEntries(left)] as const] : [];
  });
  return Object.fromEntries(rooms);
}
