import type { Writable } from 'node:stream';
import { createColors } from 'picocolors';
import yoctoSpinner from 'yocto-spinner';

type Palette = ReturnType<typeof createColors>;

/** Something that takes a while, shown while it lasts. */
export interface Progress {
  text(text: string): void;
  /** Takes it off the screen. */
  stop(): void;
}

type OutputStream = Writable & { readonly isTTY?: boolean };

export interface OutputOptions {
  readonly stdout: OutputStream;
  readonly stderr: OutputStream;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Programs read standard output: nothing but JSON goes there. */
  readonly json: boolean;
}

const wantsColour = (stream: OutputStream, env: OutputOptions['env']): boolean =>
  stream.isTTY === true && !env['NO_COLOR'] && env['TERM'] !== 'dumb';

/** Everything a command writes. People read lines (coloured and spinning on a terminal only), programs read JSON. */
export class Output {
  readonly json: boolean;
  /** A person looks at standard output. */
  readonly isTTY: boolean;
  readonly colors: Palette;
  readonly #errorColors: Palette;
  readonly #options: OutputOptions;
  #spinner: { readonly stop: () => unknown; readonly start: () => unknown; text: string } | undefined;

  constructor(options: OutputOptions) {
    this.#options = options;
    this.json = options.json;
    this.isTTY = options.stdout.isTTY === true;
    this.colors = createColors(wantsColour(options.stdout, options.env));
    this.#errorColors = createColors(wantsColour(options.stderr, options.env));
  }

  /** A line for people; nothing with `--json`. */
  line(text = ''): void {
    if (!this.json) this.#print(`${text}\n`);
  }

  /** A line that is the result itself, also with `--json`. */
  raw(text: string): void {
    this.#print(text);
  }

  /** A document for programs. */
  document(value: unknown): void {
    this.#print(`${JSON.stringify(value, null, this.isTTY ? 2 : undefined)}\n`);
  }

  /** One JSON document per line, whoever reads. */
  jsonLine(value: unknown): void {
    this.#print(`${JSON.stringify(value)}\n`);
  }

  /** A remark beside the result. */
  note(text: string): void {
    this.#aside(`${text}\n`);
  }

  warn(text: string): void {
    this.#aside(`${this.#errorColors.yellow('!')} ${text}\n`);
  }

  failure({
    what,
    hint,
    context,
  }: {
    readonly what: string;
    readonly hint: string | null;
    readonly context: string;
  }): void {
    const { red, dim } = this.#errorColors;
    if (context !== '') this.#aside(`${dim(context.trimEnd())}\n`);
    this.#aside(`${red('✖')} ${what}\n`);
    if (hint !== null) this.#aside(`  ${hint}\n`);
  }

  /** Shows that something is going on: a spinner on a terminal, nothing elsewhere. */
  progress(text: string): Progress {
    const { stderr, env } = this.#options;
    if (stderr.isTTY !== true || env['TERM'] === 'dumb') return { text: () => undefined, stop: () => undefined };
    const spinner = yoctoSpinner({ text, stream: stderr, handleSignals: false });
    spinner.start();
    this.#spinner = spinner;
    return {
      text(next) {
        spinner.text = next;
      },
      stop: () => {
        spinner.stop();
        if (this.#spinner === spinner) this.#spinner = undefined;
      },
    };
  }

  #print(text: string): void {
    this.#around(() => this.#options.stdout.write(text));
  }

  #aside(text: string): void {
    this.#around(() => this.#options.stderr.write(text));
  }

  /** A spinner owns its line: it steps aside for what is written meanwhile. */
  #around(write: () => void): void {
    const spinner = this.#spinner;
    spinner?.stop();
    write();
    spinner?.start();
  }
}
