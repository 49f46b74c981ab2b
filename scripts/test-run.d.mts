export interface TestRun {
  readonly env: Readonly<Record<string, string>>;
  readonly end: () => Promise<void>;
  readonly isInterrupted: () => boolean;
}
export function startRun(beforeEnd?: () => Promise<void>): TestRun;
