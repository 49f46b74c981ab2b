import type { ReadText } from '../tools/index.ts';
import { instructionsBlock, nestedInstructions, nestedPaths, showsInstructions } from './agents-md.ts';

export interface NestedInstructionsOptions {
  readonly read: ReadText;
  readonly workspacePath: string;
  /** Texts of the results in the conversation so far: instructions in them are not shown again. */
  readonly shown: () => Iterable<string>;
}

/**
 * Instructions of the directories that calls touch: each is shown once in a conversation, with the result of the first call that
 * touches its directory. Instructions that a compaction removes are shown again.
 */
export class NestedInstructions {
  readonly #options: NestedInstructionsOptions;
  /** Files that this turn has searched for. */
  readonly #known = new Set<string>();

  constructor(options: NestedInstructionsOptions) {
    this.#options = options;
  }

  /** Instructions for a place that are not shown yet, to be appended to a result; empty: none. @param place as a model wrote it */
  async for(place: string): Promise<string> {
    const { read, workspacePath } = this.#options;
    const fresh = nestedPaths(place, workspacePath).filter((path) => !this.#known.has(path));
    // Before any wait: calls that run in parallel share their directories.
    for (const path of fresh) this.#known.add(path);
    const found = await Promise.all(fresh.map((path) => nestedInstructions(read, path, workspacePath)));
    return found
      .filter((each) => each !== undefined)
      .filter(({ path }) => !this.#isShown(path))
      .map((each) => `\n\n${instructionsBlock(each)}`)
      .join('');
  }

  #isShown(path: string): boolean {
    for (const text of this.#options.shown()) if (showsInstructions(text, path)) return true;
    return false;
  }
}
