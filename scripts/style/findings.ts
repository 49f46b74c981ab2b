/** A place that does not follow the style. */
export interface Finding {
  /** From the root of the checkout. */
  readonly file: string;
  /** From 1. */
  readonly line: number;
  /** Of the pattern, or of the check that found it. */
  readonly id: string;
  readonly reason: string;
  /** Wording to use. */
  readonly instead: string;
}
