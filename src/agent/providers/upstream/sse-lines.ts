import { defaults } from '../../../protocol/index.ts';
import { ModelError } from '../../model.ts';

const lf = 0x0a;
const cr = 0x0d;

/** A receiver that knows some payloads at first sight, while they still stand among others. */
export interface Shortcut {
  /** Finds the end of the payload that begins at `at` of `text`; -1: it must be parsed on its own. */
  endOf(text: string, at: number): number;
  /** Takes the payload that `endOf` found last. */
  take(): void;
}

/**
 * Reads an event stream (WHATWG HTML, section 9.2.6) that is pushed into it, and hands on the `data` of every event once
 * it is whole, in the same call. Bytes may be cut anywhere: a line is decoded only when it is complete. Other fields
 * and comments are left out. More lenient than the standard in one thing: `end` delivers an event whose blank line is
 * missing, because some upstreams forget it.
 */
export class SseLines {
  readonly #onData: (data: string) => void;
  readonly #shortcut: Shortcut | undefined;
  #held: Uint8Array[] = [];
  #heldBytes = 0;
  #data: string | undefined;
  #isStart = true;
  #endedWithCr = false;

  constructor(onData: (data: string) => void, shortcut?: Shortcut) {
    this.#onData = onData;
    this.#shortcut = shortcut;
  }

  /** @throws ModelError (upstreamProtocol) when one event exceeds 4 MiB; any error of the receiver */
  push(chunk: Buffer): void {
    const cut = endOfLastLine(chunk);
    if (cut === 0) {
      this.#hold(chunk);
      return;
    }
    const text = this.#take(chunk, cut);
    if (cut < chunk.length) this.#hold(chunk.subarray(cut));
    this.#read(this.#normalised(text));
  }

  /** Nothing more will come. */
  end(): void {
    if (this.#heldBytes > 0) this.push(Buffer.of(lf));
    this.#dispatch();
  }

  #hold(bytes: Uint8Array): void {
    this.#heldBytes += bytes.length;
    this.#refuseTooLong(this.#heldBytes);
    if (bytes.length > 0) this.#held.push(bytes);
  }

  #take(chunk: Buffer, end: number): string {
    if (this.#held.length === 0) return chunk.toString('utf8', 0, end);
    const whole = Buffer.concat([...this.#held, chunk.subarray(0, end)]);
    this.#held = [];
    this.#heldBytes = 0;
    return whole.toString('utf8');
  }

  /** Every line ends with a line feed: the standard knows three ways to end one. */
  #normalised(text: string): string {
    let clean = text;
    if (this.#endedWithCr && clean.startsWith('\n')) clean = clean.slice(1);
    this.#endedWithCr = text.endsWith('\r');
    if (this.#isStart && clean.startsWith('\uFEFF')) clean = clean.slice(1);
    this.#isStart = false;
    return clean.includes('\r') ? clean.replace(/\r\n?/g, '\n') : clean;
  }

  #read(text: string): void {
    for (let at = 0; at < text.length; ) {
      const known = this.#data === undefined && text.startsWith('data: ', at) ? this.#known(text, at + 6) : -1;
      if (known !== -1) {
        at = known;
        continue;
      }
      const end = text.indexOf('\n', at);
      this.#line(text.slice(at, end));
      at = end + 1;
    }
  }

  /** Reads the usual event: one line of a known kind, then an empty one. Returns the start of the next event. */
  #known(text: string, at: number): number {
    const end = this.#shortcut?.endOf(text, at) ?? -1;
    if (end === -1 || text.charCodeAt(end) !== lf || text.charCodeAt(end + 1) !== lf) return -1;
    this.#shortcut?.take();
    return end + 2;
  }

  #line(line: string): void {
    if (line === '') this.#dispatch();
    if (!line.startsWith('data:')) return;
    const value = line.slice(line[5] === ' ' ? 6 : 5);
    this.#data = this.#data === undefined ? value : `${this.#data}\n${value}`;
    this.#refuseTooLong(this.#data.length);
  }

  #dispatch(): void {
    const data = this.#data;
    this.#data = undefined;
    if (data !== undefined) this.#onData(data);
  }

  #refuseTooLong(size: number): void {
    if (size <= defaults.upstream.eventBytes) return;
    throw new ModelError('upstreamProtocol', 'The upstream sent an event of more than 4 MiB.', { isRetryable: false });
  }
}

/** The place after the last line end in `chunk`; 0 when it holds none. */
function endOfLastLine(chunk: Buffer): number {
  if (chunk[chunk.length - 1] === lf) return chunk.length;
  return Math.max(chunk.lastIndexOf(lf), chunk.lastIndexOf(cr)) + 1;
}
