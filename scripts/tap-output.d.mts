export interface Counts {
  readonly passed: number;
  readonly failed: number;
}
export function countsOf(tap: string): Counts | undefined;
export function failuresOf(tap: string): readonly string[];
export function failureLines(name: string, tap: string, isTimedOut?: boolean): readonly string[];
export function isWorthShowing(): (line: string) => boolean;

export interface TestProcessResult {
  readonly name: string;
  readonly isGood: boolean;
  /** Assertions. A process that fails without a failed assertion counts as one. */
  readonly counts: Counts;
  readonly milliseconds: number;
  /** Processor time, as the process reports it at its end (`cpu-time.mjs`). */
  readonly cpuSeconds?: number;
  readonly exitCode: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly isTimedOut: boolean;
  /** TAP of the process. */
  readonly output: string;
}
export function fileReport(result: TestProcessResult, number: number): string;
export function summaryReport(results: readonly TestProcessResult[]): string;
