/** A repository with a failing test, the solution of a good model, and the check that it is solved. */
import type { Change } from './slips.ts';

export type Language = 'typescript' | 'python' | 'c' | 'shell';

/** One step of a model, in no harness's words; `toolset.ts` finds the tool for it. */
export type Move =
  | { readonly kind: 'run'; readonly command: string; readonly limitMs?: number }
  /** A command that continues while the model works on. */
  | { readonly kind: 'serve'; readonly command: string }
  | { readonly kind: 'read'; readonly path: string; readonly from?: number; readonly lines?: number }
  | { readonly kind: 'edit'; readonly path: string; readonly edits: readonly Edit[] }
  | { readonly kind: 'write'; readonly path: string; readonly content: string };

export interface Edit {
  readonly old: string;
  readonly new: string;
}

/** Yields the calls of one answer, resumes with their results in order, and returns the last answer. */
export type Work = Generator<readonly Move[], string, readonly string[]>;

/** Texts that the model has been shown so far, prompt and tool results included. */
export interface Conversation {
  saw(pattern: RegExp): boolean;
  /** The last match of the first group in all that was shown. */
  last(pattern: RegExp): string | undefined;
}

export interface Task {
  readonly name: string;
  readonly language: Language;
  /** The difficulty for a harness, for the table. */
  readonly probes: string;
  readonly prompt: string;
  /** Content by path. A name that ends in `.sh` or lies in a `bin` directory is executable. */
  readonly files: Readonly<Record<string, string>>;
  /** Exit code 0 means: solved. The lab runs it too, with its own copy of the files that are not to be changed. */
  readonly test: string;
  readonly changes: readonly Change[];
  /** Read before the change, in one answer; by default the files to change. */
  readonly reads?: readonly string[];
  /** Environment of the harness besides the usual. */
  readonly env?: (workspace: string) => Record<string, string>;
  /** In place of the usual way: list, read, reproduce, change, test, answer. */
  readonly work?: (conversation: Conversation, task: Task) => Work;
  /** Files that the work makes, with their content. */
  readonly makes?: Readonly<Record<string, string>>;
}
