import { TextStreamRedactor } from '../../../lib/index.ts';
import { defaults } from '../../../protocol/index.ts';
import { KeptOutput, type WholeText } from './kept-output.ts';
import { LiveOutput } from './live-output.ts';

interface CommandOutputOptions {
  readonly secrets: readonly string[];
  /** Most characters of the text for the model. */
  readonly maxOutputChars: number;
  /** Takes in the whole output when it is longer than that. */
  readonly whole?: WholeText | undefined;
  /** Called with live output. */
  readonly emit: (text: string) => void;
}

/** Processes a command's output: removes secrets, passes it on live, and shortens it for the model. */
export class CommandOutput {
  readonly #masked: TextStreamRedactor;
  readonly #kept: KeptOutput;
  readonly #live: LiveOutput;

  constructor({ secrets, maxOutputChars, whole, emit }: CommandOutputOptions) {
    this.#masked = new TextStreamRedactor(secrets);
    this.#kept = new KeptOutput(maxOutputChars, whole);
    this.#live = new LiveOutput(emit, defaults.agent.commandOutputChars);
  }

  push(text: string): void {
    this.#pass(this.#masked.push(text));
  }

  /** Output was lost. @param bytes about as many characters */
  skip(bytes: number): void {
    this.#masked.skip();
    this.#kept.skip(bytes);
  }

  /** Ends the output and passes on the rest. */
  close(): void {
    this.#pass(this.#masked.end());
    this.#live.flush();
    this.#kept.close();
  }

  /** Output for the model. */
  read(): string {
    return this.#kept.read();
  }

  #pass(text: string): void {
    this.#kept.push(text);
    this.#live.push(text);
  }
}
