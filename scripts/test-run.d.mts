export interface TestRun {
  readonly env: Readonly<Record<string, string>> & { readonly TMPDIR: string };
  readonly end: () => Promise<void>;
  readonly isInterrupted: () => boolean;
}
export function startRun(beforeEnd?: () => Promise<void>): TestRun;
export function asBatch(): readonly string[];
export function inMemory(directory: string): readonly string[];
