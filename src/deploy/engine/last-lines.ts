import { printable } from './lines.ts';

/** The last lines of what a program said that say something, as one line for a message. */
export function lastLines(text: string, count: number): string {
  const lines = text.split(/[\r\n]+/).map((line) => printable(line).trim());
  return lines
    .filter((line) => line !== '')
    .slice(-count)
    .join(' · ');
}
