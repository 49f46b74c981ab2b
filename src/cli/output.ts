import type { Writable } from 'node:stream';
import yoctoSpinner from 'yocto-spinner';
import { visible } from '../lib/index.ts';
import { markedPalette, Painter, type Palette, unmarked } from './paint.ts';

/** Indicator of work under way. */
export interface Progress {
  text(text: string): void;
  /** Removes it from the screen. */
  stop(): void;
}

type OutputStream = Writable & { readonly isTTY?: boolean; readonly columns?: number };

export interface OutputOptions {
  readonly stdout: OutputStream;
  readonly stderr: OutputStream;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Whether programs read standard output: it contains only JSON then. */
  readonly json: boolean;
}

/** Text on one line, without marks, for a library that writes to the terminal itself. */
const inLine = (text: string): string => visible(unmarked(text), { multiline: false });

/** `\u202e`, one per code unit. */
const jsonEscape = (codePoint: number): string =>
  String.fromCodePoint(codePoint)
    .split('')
    .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
    .join('');

const wantsColour = (stream: OutputStream, env: OutputOptions['env']): boolean =>
  stream.isTTY === true && !env['NO_COLOR'] && env['TERM'] !== 'dumb';

/**
 * Output of a command. People read lines (coloured and spinning on a terminal only), programs read JSON. Text for a
 * terminal, and all of standard error, is made visible first: foreign text moves no cursor and hides nothing. Standard
 * output that is not a terminal gets every byte unchanged.
 */
export class Output {
  readonly json: boolean;
  /** Whether standard output is a terminal. */
  readonly isTTY: boolean;
  /** Columns of the terminal; Infinity without one. */
  readonly width: number;
  /** Marks that the methods of this object turn into colours. */
  readonly colors: Palette;
  readonly #errorColors: Palette;
  readonly #painter: Painter;
  readonly #errorPainter: Painter;
  readonly #options: OutputOptions;
  #spinner: { readonly stop: () => unknown; readonly start: () => unknown; text: string } | undefined;

  constructor(options: OutputOptions) {
    this.#options = options;
    this.json = options.json;
    this.isTTY = options.stdout.isTTY === true;
    this.width = (this.isTTY && options.stdout.columns) || Number.POSITIVE_INFINITY;
    const hasColour = wantsColour(options.stdout, options.env);
    const hasErrorColour = wantsColour(options.stderr, options.env);
    this.colors = markedPalette(hasColour);
    this.#errorColors = markedPalette(hasErrorColour);
    this.#painter = new Painter({ hasColour });
    this.#errorPainter = new Painter({ hasColour: hasErrorColour });
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
    this.#print(`${this.#json(value, this.isTTY ? 2 : undefined)}\n`);
  }

  /** Prints one JSON document per line, on a terminal too. */
  jsonLine(value: unknown): void {
    this.#print(`${this.#json(value)}\n`);
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

  /** Shows that work is under way: a spinner on a terminal, nothing elsewhere. */
  progress(text: string): Progress {
    const { stderr, env } = this.#options;
    if (stderr.isTTY !== true || env['TERM'] === 'dumb') return { text: () => undefined, stop: () => undefined };
    const spinner = yoctoSpinner({ text: inLine(text), stream: stderr, handleSignals: false });
    spinner.start();
    this.#spinner = spinner;
    return {
      text(next) {
        spinner.text = inLine(next);
      },
      stop: () => {
        spinner.stop();
        if (this.#spinner === spinner) this.#spinner = undefined;
      },
    };
  }

  /** Makes a question safe for the terminal, for prompts that write to it themselves. */
  question(text: string): string {
    return new Painter({ hasColour: wantsColour(this.#options.stdout, this.#options.env) }).paint(text);
  }

  /** JSON text; for a terminal, with invisible characters escaped, which does not change its value. */
  #json(value: unknown, indent?: number): string {
    const text = JSON.stringify(value, null, indent) ?? 'null';
    return this.isTTY ? visible(text, { spell: jsonEscape }) : text;
  }

  #print(text: string): void {
    const shown = this.isTTY ? this.#painter.paint(text) : text;
    this.#around(() => this.#options.stdout.write(shown));
  }

  #aside(text: string): void {
    const shown = this.#errorPainter.paint(text);
    this.#around(() => this.#options.stderr.write(shown));
  }

  /** Hides the spinner, which owns its line, while `write` writes. */
  #around(write: () => void): void {
    const spinner = this.#spinner;
    spinner?.stop();
    write();
    spinner?.start();
  }
}
