import { printable } from './lines.ts';

/** Joins the last lines of a program's output that are not empty into one line for a message. */
export function lastLines(text: string, count: number): string {
  const lines = text.split(/[\r\n]+/).map((line) => printable(line).trim());
  return lines
    .filter((line) => line !== '')
    .slice(-count)
    .join(' · ');
}
