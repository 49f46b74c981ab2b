import { count } from '../../lib/index.ts';
import type { ToolResult } from '../tool.ts';

/** Result of a successful tool. */
export const done = (text: string): ToolResult => ({ text, isError: false });

/** Why a tool could not. `problem` is a sentence for the model, which may do better next time. */
export const failed = (problem: string): ToolResult => ({ text: `Error: ${problem}`, isError: true });

/** Result of a call that is refused even with approval. */
export const refused = (problem: string): ToolResult => ({ text: `Error: refused: ${problem}`, isError: true });

/** `1 byte`, `512 bytes`, `1.5 KB`, `12 MB`; 1 KB is 1 024 bytes. */
export function formatBytes(bytes: number): string {
  if (bytes < 1024) return count(bytes, 'byte');
  const inKilobytes = bytes / 1024;
  const [value, unit] = inKilobytes < 1024 ? [inKilobytes, 'KB'] : [inKilobytes / 1024, 'MB'];
  return `${value < 10 ? value.toFixed(1) : Math.round(value)} ${unit}`;
}

/**
 * Returns at most `max` characters of a line, and the number of missing ones. Never ends in half of a surrogate pair.
 *
 * @param length of the whole line, when only its beginning is at hand
 */
export function cutLine(line: string, max: number, length = line.length): string {
  if (length <= max) return line.slice(0, length);
  const kept = line.slice(0, max).replace(/[\uD800-\uDBFF]$/, '');
  return `${kept}… [${length - kept.length} more characters]`;
}

/** The code of an error of the operating system, e.g. `ENOENT`. */
export const errorCode = (error: unknown): string | undefined =>
  error instanceof Error ? (error as NodeJS.ErrnoException).code : undefined;
