import type { HttpResponse } from 'uWebSockets.js';
import { SseReader } from './sse.ts';

/** Writes of the one shared cork callback: a closure per write would cost more than the write's own user time. */
let corkedRes: HttpResponse | undefined;
let corkedPiece: Uint8Array | string = '';
let corkedResult = true;
const writeCorked = (): void => {
  if (corkedRes !== undefined) corkedResult = corkedRes.write(corkedPiece);
};

/** Writes one piece of a body. False when bytes were left behind in the library. */
export function writePiece(res: HttpResponse, piece: Uint8Array | string): boolean {
  corkedRes = res;
  corkedPiece = piece;
  res.cork(writeCorked);
  corkedRes = undefined;
  return corkedResult;
}

export class UwsReader extends SseReader {
  readonly #res: HttpResponse;
  #over = false;

  constructor(res: HttpResponse) {
    super();
    this.#res = res;
  }

  protected write(piece: Uint8Array): boolean {
    return this.#over || writePiece(this.#res, piece);
  }

  protected finish(): void {
    if (this.#over) return;
    this.#over = true;
    this.#res.cork(() => this.#res.end());
  }

  protected cut(): void {
    if (!this.#over) this.#res.close();
  }

  override gone(): void {
    this.#over = true;
    super.gone();
  }
}

/** One closure serves both events of the library: it passes an offset to `onWritable` and nothing to `onAborted`. */
export function watchReader(reader: UwsReader, res: HttpResponse): void {
  const listener = (offset?: number): boolean => {
    if (offset === undefined) reader.gone();
    else reader.flush();
    return true;
  };
  res.onAborted(listener as () => void);
  res.onWritable(listener);
}
