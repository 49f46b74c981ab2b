import { createInterface, type Interface } from 'node:readline/promises';
import { type Readable, Writable } from 'node:stream';

type Terminal = Writable & { readonly isTTY?: boolean; readonly columns?: number; readonly rows?: number };

/** Drops the output of readline while an answer is on the screen. Keys typed then stay in its line, which the next prompt shows. */
class Gate extends Writable {
  isOpen = true;
  readonly isTTY: boolean;
  readonly #terminal: Terminal;

  constructor(terminal: Terminal) {
    super({ decodeStrings: false });
    this.#terminal = terminal;
    this.isTTY = terminal.isTTY === true;
    terminal.on('resize', () => this.emit('resize'));
  }

  get columns(): number {
    return this.#terminal.columns ?? 80;
  }

  override _write(chunk: string | Buffer, _: BufferEncoding, done: () => void): void {
    if (this.isOpen) this.#terminal.write(chunk);
    done();
  }
}

export interface PromptOptions {
  readonly input: Readable;
  readonly output: Terminal;
  /** Prompt that is safe to show on the terminal. */
  readonly prompt: string;
  /** Ctrl-C while no message is being typed. */
  readonly onInterrupt: () => void;
}

const pasteMode = { on: '\u001b[?2004h', off: '\u001b[?2004l' } as const;
const continuation = '… ';

/**
 * Reads messages and answers to questions from a terminal. A message has more lines after a backslash at the end of a line, after
 * Ctrl-J, or when it is pasted.
 */
export class ChatPrompt {
  readonly #readline: Interface;
  readonly #gate: Gate;
  readonly #options: PromptOptions;
  readonly #messages: string[] = [];
  #lines: string[] = [];
  #wake: () => void = () => undefined;
  /** Ends a question when the input does. */
  readonly #closing = new AbortController();
  #isPasting = false;
  #isContinued = false;

  constructor(options: PromptOptions) {
    this.#options = options;
    const { input, output, prompt } = options;
    this.#gate = new Gate(output);
    // Before readline, which acts on a key immediately.
    this.#readline = createInterface({ input, output: this.#gate, terminal: this.#gate.isTTY, prompt });
    input.prependListener('keypress', this.#onKey);
    this.#readline.on('line', (line) => this.#take(line)).on('close', () => this.#close());
    this.#readline.on('SIGINT', () => this.#interrupt());
    if (this.#gate.isTTY) output.write(pasteMode.on);
  }

  /** The next message; undefined at the end of the input. */
  async read(): Promise<string | undefined> {
    this.#gate.isOpen = true;
    const [typedAhead] = this.#messages;
    if (typedAhead !== undefined) this.#options.output.write(`${this.#options.prompt}${typedAhead}\n`);
    else if (!this.#isClosed) this.#readline.prompt(true);
    while (this.#messages.length === 0 && !this.#isClosed) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
    this.#gate.isOpen = false;
    return this.#messages.shift();
  }

  /** Shows a question and returns the line typed after it; text typed before stays for the next message. @throws AbortError */
  async question(words: string, withdrawn: AbortSignal): Promise<string> {
    const signal = AbortSignal.any([withdrawn, this.#closing.signal]);
    const typed = this.#readline.line;
    this.#clearLine();
    const at = words.lastIndexOf('\n') + 1;
    this.#gate.isOpen = true;
    this.#options.output.write(words.slice(0, at));
    try {
      return await this.#readline.question(words.slice(at), { signal });
    } finally {
      if (withdrawn.aborted) {
        this.#clearLine();
        this.#options.output.write('\n');
      }
      this.#gate.isOpen = false;
      if (!this.#isClosed) this.#readline.write(typed);
    }
  }

  close(): void {
    this.#readline.close();
  }

  get #isClosed(): boolean {
    return this.#closing.signal.aborted;
  }

  readonly #onKey = (_: unknown, key: { readonly name?: string } | undefined): void => {
    if (key?.name === 'paste-start') this.#isPasting = true;
    else if (key?.name === 'paste-end') this.#isPasting = false;
    this.#isContinued = key?.name === 'enter';
  };

  #take(line: string): void {
    const isContinued = this.#isPasting || this.#isContinued || line.endsWith('\\');
    this.#isContinued = false;
    this.#lines.push(line.endsWith('\\') && !this.#isPasting ? line.slice(0, -1) : line);
    if (isContinued) {
      if (!this.#isPasting) this.#options.output.write(this.#gate.isOpen ? continuation : '');
      return;
    }
    this.#messages.push(this.#lines.join('\n'));
    this.#lines = [];
    this.#wake();
  }

  #interrupt(): void {
    const isTyping = this.#gate.isOpen && (this.#readline.line !== '' || this.#lines.length > 0);
    if (!isTyping) {
      this.#options.onInterrupt();
      return;
    }
    this.#lines = [];
    this.#clearLine();
    this.#options.output.write('\n');
    this.#readline.prompt();
  }

  #clearLine(): void {
    this.#readline.write(null, { ctrl: true, name: 'e' });
    this.#readline.write(null, { ctrl: true, name: 'u' });
  }

  #close(): void {
    if (this.#isClosed) return;
    this.#closing.abort();
    this.#options.input.off('keypress', this.#onKey);
    // The shell writes its own prompt next.
    this.#options.output.write(this.#gate.isTTY ? `${pasteMode.off}\n` : '\n');
    this.#wake();
  }
}
