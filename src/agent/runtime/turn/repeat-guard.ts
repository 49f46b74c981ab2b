import { defaults } from '../../../protocol/index.ts';
import type { ModelToolCall } from '../../model.ts';

/** Tools that wait for something: the same answer again means that it has not happened yet. */
const waitingTools: ReadonlySet<string> = new Set(['ExecOutput']);

const { refusedRepeats, stuckRepeats } = defaults.agent;

/**
 * Distinguishes a model that is stuck from one that waits: only calls whose result stays the same count, and a new result starts afresh.
 * After `refusedRepeats` of them the call is refused; after `stuckRepeats`, refused ones included, the model is stuck. Calls that
 * cannot be used count as the same, also with different arguments.
 */
export class RepeatGuard {
  #tool = '';
  #call = '';
  #result = '';
  #repeats = 0;

  /** Refusal of a call that has been repeated in vain, for the model. Undefined: it may run. */
  refusalOf(call: ModelToolCall): string | undefined {
    if (keyOf(call) !== this.#call || this.#repeats < refusedRepeats) return undefined;
    return (
      `Error: ${call.name} was called with the same arguments ${this.#repeats} times in a row, and its result stayed the same. ` +
      'It is not run again: do something else, or answer.'
    );
  }

  /**
   * Counts a call that has ended.
   * @param result its text; undefined: refused by this guard
   * @param isUnusable the tool is unknown, or the arguments do not fit it
   */
  note(call: ModelToolCall, result: string | undefined, isUnusable = false): void {
    if (waitingTools.has(call.name)) return;
    const key = isUnusable ? unusable : keyOf(call);
    const isSame = key === this.#call && (isUnusable || result === undefined || result === this.#result);
    this.#repeats = isSame ? this.#repeats + 1 : 1;
    this.#tool = call.name;
    this.#call = key;
    if (result !== undefined) this.#result = result;
  }

  /** Tool that is called again and again in vain. */
  get stuckTool(): string | null {
    return this.#repeats < stuckRepeats ? null : this.#tool;
  }
}

/** Key of every call that cannot be used; no name of a tool begins with a space. */
const unusable = ' unusable';

const keyOf = ({ name, arguments: args }: ModelToolCall): string => `${name} ${args}`;
