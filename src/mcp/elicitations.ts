import { AsyncLocalStorage } from 'node:async_hooks';
import { type QuestionAnswer, type QuestionForm, readElicitation } from '../protocol/index.ts';
import { McpFailure } from './failure.ts';

/** Time limit that the library gets for a call; the limit in the server's settings ends the call sooner. */
export const longestMs = 2 ** 31 - 1;

/** Time left of a call, over all connections that it is made on. Milliseconds. */
export interface CallLimit {
  leftMs: number;
}

interface Call {
  readonly elicit: (form: QuestionForm, withdrawn: AbortSignal) => Promise<QuestionAnswer>;
  readonly pause: () => () => void;
}

/** Questions of one MCP server, each as part of its call. The time limit of the call is paused while a question waits. */
export class Elicitations {
  readonly #serverName: string;
  readonly #timeoutMs: number;
  readonly #calls = new Set<Call>();
  /** Servers of the newer era ask inside a call. Servers of the older era ask beside it, so only one call may run at a time. */
  readonly #current = new AsyncLocalStorage<Call>();

  constructor(serverName: string, timeoutMs: number) {
    this.#serverName = serverName;
    this.#timeoutMs = timeoutMs;
  }

  /** Runs a call within its time limit. Rejects with `REQUEST_TIMEOUT` at its end, or as `work` does. */
  async during<T>(
    {
      signal,
      elicit,
      limit = { leftMs: this.#timeoutMs },
    }: Pick<Call, 'elicit'> & { readonly signal: AbortSignal; readonly limit?: CallLimit | undefined },
    work: (signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    const late = new AbortController();
    let timer: NodeJS.Timeout | undefined;
    let since = 0;
    let questions = 0;
    const run = () => {
      since = performance.now();
      timer = setTimeout(() => late.abort(new CallTimeout()), limit.leftMs);
    };
    const stop = () => {
      clearTimeout(timer);
      limit.leftMs = Math.max(1, limit.leftMs - (performance.now() - since));
    };
    const pause = () => {
      questions += 1;
      if (questions === 1) stop();
      return () => {
        questions -= 1;
        if (questions === 0 && this.#calls.has(call)) run();
      };
    };
    const call = { elicit, pause };
    this.#calls.add(call);
    run();
    try {
      return await this.#current.run(call, () => work(AbortSignal.any([signal, late.signal])));
    } catch (error) {
      throw late.signal.aborted ? late.signal.reason : error;
    } finally {
      this.#calls.delete(call);
      if (questions === 0) stop();
    }
  }

  /** Asks the user. Closes a question that belongs to no call, or whose call is ambiguous. @throws McpFailure for a refused request */
  async answer(params: unknown, withdrawn: AbortSignal): Promise<QuestionAnswer> {
    const read = readElicitation(params, 'mcp', this.#serverName);
    if (!read.ok) throw new McpFailure('protocol', read.problem);
    const [only, ...others] = this.#calls;
    const stored = this.#current.getStore();
    const call = stored && this.#calls.has(stored) ? stored : others.length === 0 ? only : undefined;
    if (!call) return { action: 'cancel' };
    const resume = call.pause();
    try {
      return await call.elicit(read.form, withdrawn);
    } finally {
      resume();
    }
  }
}

/** A call took longer than `toolTimeoutSec`. */
class CallTimeout extends Error {
  override readonly name = 'CallTimeout';
  readonly code = 'REQUEST_TIMEOUT';
}
