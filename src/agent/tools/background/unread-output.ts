import { TextStreamRedactor } from '../../../lib/index.ts';
import { KeptOutput, type WholeText } from '../exec/kept-output.ts';

export interface UnreadOutputOptions {
  readonly secrets: readonly string[];
  /** Most characters of one reading. */
  readonly maxChars: number;
  /** Takes in all output. Absent: only output that is read is available. */
  readonly file: WholeText | undefined;
  /** Characters of the beginning that were read before. */
  readonly readChars?: number;
  /** Called after a reading, with the number of all characters read so far. */
  readonly onRead?: ((chars: number) => void) | undefined;
}

/** Output of a background process since it was last read, in bounded memory: both ends of a long one. */
export class UnreadOutput {
  readonly #options: UnreadOutputOptions;
  readonly #masked: TextStreamRedactor;
  readonly #waiting = new Set<() => void>();
  #kept: KeptOutput;
  #isEmpty = true;
  #isClosed = false;
  /** Characters that came. */
  #total = 0;

  constructor(options: UnreadOutputOptions) {
    this.#options = options;
    this.#masked = new TextStreamRedactor(options.secrets);
    this.#kept = this.#begin();
  }

  push(text: string): void {
    this.#add(this.#masked.push(text));
  }

  /** Output was lost. */
  skip(): void {
    this.#masked.skip();
  }

  /** Nothing more will come. */
  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#add(this.#masked.end());
    this.#options.file?.close();
    this.#wake();
  }

  /** Everything since the last reading; empty: nothing. */
  read(): string {
    const text = this.#kept.read();
    this.#kept = this.#begin();
    this.#isEmpty = true;
    this.#options.onRead?.(this.#total);
    return text;
  }

  /** Resolves when there is something to read, when nothing more will come, after `ms`, or when `signal` aborts. */
  arrives(ms: number, signal: AbortSignal): Promise<void> {
    if (!this.#isEmpty || this.#isClosed || ms <= 0 || signal.aborted) return Promise.resolve();
    return new Promise((resolve) => {
      const done = () => {
        clearTimeout(timer);
        signal.removeEventListener('abort', done);
        this.#waiting.delete(done);
        resolve();
      };
      const timer = setTimeout(done, ms);
      signal.addEventListener('abort', done, { once: true });
      this.#waiting.add(done);
    });
  }

  #add(text: string): void {
    if (text === '') return;
    this.#options.file?.write(text);
    const unread = text.slice(Math.max(0, (this.#options.readChars ?? 0) - this.#total));
    this.#total += text.length;
    if (unread === '') return;
    this.#kept.push(unread);
    this.#isEmpty = false;
    this.#wake();
  }

  #wake(): void {
    for (const done of [...this.#waiting]) done();
  }

  /** The file has everything already: it is only named. */
  #begin(): KeptOutput {
    const { maxChars, file } = this.#options;
    return new KeptOutput(
      maxChars,
      file && {
        write: () => undefined,
        close: () => undefined,
        get kept() {
          return file.kept;
        },
      },
    );
  }
}
