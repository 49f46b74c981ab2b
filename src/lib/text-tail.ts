import { StringDecoder } from 'node:string_decoder';

/** The last bytes of a stream of text. Costs the same however much is written. */
export class TextTail {
  readonly #limit: number;
  #chunks: Buffer[] = [];
  #bytes = 0;

  constructor(limit: number) {
    this.#limit = limit;
  }

  write(chunk: Buffer): void {
    this.#chunks.push(chunk.length > this.#limit ? chunk.subarray(-this.#limit) : chunk);
    this.#bytes += this.#chunks.at(-1)?.length ?? 0;
    for (let first = this.#chunks[0]; first && this.#bytes - first.length >= this.#limit; first = this.#chunks[0]) {
      this.#bytes -= first.length;
      this.#chunks.shift();
    }
  }

  /** The last lines, at most `chars` of them, without colours and other control characters. */
  read(chars: number): string {
    const all = Buffer.concat(this.#chunks).subarray(-this.#limit);
    const text = plainText(new StringDecoder('utf8').write(all)).trim();
    if (text.length <= chars) return text;
    const end = text.slice(-chars);
    return end.slice(end.indexOf('\n') + 1);
  }
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: finds control characters
const escapes = /\u001b\[[0-9;?]*[ -/]*[@-~]|[\u0000-\u0008\u000b-\u001f\u007f]/g;

/** Untrusted text made safe to show: no escape sequences, no control characters but tab and line feed. */
export const plainText = (text: string): string => text.replace(escapes, '');
