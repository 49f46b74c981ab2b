export interface Counts {
  readonly passed: number;
  readonly failed: number;
}
export function countsOf(tap: string): Counts | undefined;
export function isWorthShowing(): (line: string) => boolean;

interface Result {
  readonly name: string;
  readonly isGood: boolean;
  readonly counts: Counts;
  readonly milliseconds: number;
  readonly cpuSeconds?: number;
  readonly exitCode: number | null;
  readonly signal: string | null;
  readonly isTimedOut: boolean;
  readonly output: string;
}
export function fileReport(result: Result, number: number): string;
export function summaryReport(results: readonly Result[]): string;
