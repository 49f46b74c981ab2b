import { createHash } from 'node:crypto';
import type { Severity } from '../../protocol/index.ts';
import type { Anchor } from './anchor.ts';

/** Text without white space: line breaks and indentation are the formatter's choice. */
export const bare = (text: string): string => text.normalize('NFC').replace(/\s+/g, '');

export interface Fingerprinted {
  readonly path: string;
  readonly title: string;
  readonly severity: Severity;
  readonly oldText?: string | undefined;
  readonly anchor: Anchor;
}

/**
 * Computes a value that two findings of a review share only when they agree in file, lines, quoted text, title and severity. Findings
 * of two pushes are compared with `isSameFinding`.
 */
export function fingerprintOf({ path, title, severity, oldText = '', anchor }: Fingerprinted): string {
  const { side, line, startLine = line } = anchor.placement === 'inline' ? anchor : ({} as { [K in string]?: never });
  const parts = [path, side, startLine, line, bare(oldText), title.normalize('NFC').trim(), severity];
  return createHash('sha256').update(JSON.stringify(parts)).digest('hex').slice(0, 24);
}
