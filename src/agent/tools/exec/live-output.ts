/** Time for which pieces are gathered before they are passed on. */
const gatherMs = 20;
const notice = '\n[… more output than can be followed live; the result has its beginning and its end]\n';

/** Passes on a running command's output: in few pieces, and at most `maxChars` characters. */
export class LiveOutput {
  readonly #emit: (text: string) => void;
  #sandbox: number;
  #gathered = '';
  #timer: NodeJS.Timeout | undefined;

  constructor(emit: (text: string) => void, maxChars: number) {
    this.#emit = emit;
    this.#sandbox = maxChars;
  }

  push(text: string): void {
    if (this.#sandbox <= 0 || text === '') return;
    this.#gathered += text.slice(0, this.#sandbox);
    this.#sandbox -= text.length;
    if (this.#sandbox <= 0) this.#gathered += notice;
    this.#timer ??= setTimeout(() => this.flush(), gatherMs);
  }

  /** Passes waiting text on at once. */
  flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const text = this.#gathered.toWellFormed();
    this.#gathered = '';
    if (text !== '') this.#emit(text);
  }
}
