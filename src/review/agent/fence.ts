import { backTickFence } from '../../lib/index.ts';
import { visible } from './visible.ts';

/**
 * Fences an untrusted text as data for a model, between two lines of back-ticks. They are longer than any run of back-ticks in
 * the text, so that no text can end its own fence.
 *
 * @param label kind of the text; a word of ours
 */
export function fenced(label: string, text: string): string {
  const shown = visible(text);
  const fence = backTickFence(shown);
  return `${fence}${label}\n${shown}${shown.endsWith('\n') ? '' : '\n'}${fence}`;
}

/** Cuts a text to `limit` characters, and marks the cut. */
export function bounded(text: string, limit: number): string {
  if (text.length <= limit) return text;
  return `${text.slice(0, limit)}\n… (${text.length - limit} more characters were left out)`;
}

/** A path on a line of ours: a plain path unchanged, any other as a JSON text. */
export function plainPath(path: string): string {
  return /^[\p{L}\p{N}_.+@/-]+$/u.test(path) ? path : JSON.stringify(visible(path));
}
