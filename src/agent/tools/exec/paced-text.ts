import type { Readable } from 'node:stream';
import { StringDecoder } from 'node:string_decoder';
import { PacedReading } from '../../../lib/index.ts';
import { defaults } from '../../../protocol/index.ts';

/** Decodes a command's output as UTF-8, and pauses its pipe when that takes long. Bytes that are not UTF-8 become U+FFFD. */
export class PacedText {
  readonly #decoder = new StringDecoder('utf8');
  readonly #pace = new PacedReading(defaults.reading.busyMs);
  readonly #onText: (text: string) => void;

  constructor(onText: (text: string) => void) {
    this.#onText = onText;
  }

  add(chunk: Buffer, pipe: Readable): void {
    this.#pace.run(pipe, () => this.#onText(this.#decoder.write(chunk)));
  }

  /** Passes on the bytes of an unfinished character. */
  end(): void {
    const rest = this.#decoder.end();
    if (rest !== '') this.#onText(rest);
  }
}
