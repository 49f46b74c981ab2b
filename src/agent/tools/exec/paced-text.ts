import type { Readable } from 'node:stream';
import { StringDecoder } from 'node:string_decoder';

/** A command that writes without end is read at this pace, so that the rest of the server gets its turn. */
const burstBytes = 1_048_576;
const pauseMs = 5;

/** Decodes a command's output as UTF-8, and pauses its pipe after each burst. Bytes that are not UTF-8 become U+FFFD. */
export class PacedText {
  readonly #decoder = new StringDecoder('utf8');
  readonly #onText: (text: string) => void;
  #burst = 0;
  #pause: NodeJS.Timeout | undefined;

  constructor(onText: (text: string) => void) {
    this.#onText = onText;
  }

  add(chunk: Buffer, pipe: Readable): void {
    this.#onText(this.#decoder.write(chunk));
    this.#burst += chunk.length;
    if (this.#burst < burstBytes) return;
    this.#burst = 0;
    pipe.pause();
    this.#pause = setTimeout(() => pipe.resume(), pauseMs);
  }

  /** Passes on the bytes of an unfinished character. */
  end(): void {
    clearTimeout(this.#pause);
    const rest = this.#decoder.end();
    if (rest !== '') this.#onText(rest);
  }
}
