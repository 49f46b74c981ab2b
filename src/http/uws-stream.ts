import type { HttpResponse } from 'uWebSockets.js';
import { type StreamHost, StreamWriter } from './stream.ts';
import { writePiece } from './uws-sse.ts';

export class UwsWriter extends StreamWriter {
  readonly #res: HttpResponse;

  constructor(host: StreamHost, res: HttpResponse) {
    super(host);
    this.#res = res;
  }

  protected send(text: string): boolean {
    return writePiece(this.#res, text);
  }

  protected finish(text: string): void {
    this.#res.cork(() => this.#res.end(text));
  }

  protected disconnect(): void {
    this.#res.close();
  }
}
