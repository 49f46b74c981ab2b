import type { TextPart } from './texts.ts';

/** A place that does not follow the style. */
export interface Finding {
  /** From the root of the checkout. */
  readonly file: string;
  /** From 1. */
  readonly line: number;
  /** Id of the pattern, or of the check that found it. */
  readonly id: string;
  /** Kind of the part of the file, if a pattern was found. */
  readonly kind?: TextPart['kind'];
  readonly reason: string;
  /** Wording to use. */
  readonly instead: string;
}
