import type { ServerOptions, SseSource } from './types.ts';

type Limits = ServerOptions['limits'];

/** Writes before the event loop gets its turn: about 2 ms (one unbroken round to 500 readers took 10 ms). */
const writesPerTurn = 200;
/** A write of this many bytes costs twice as much as a tiny one. */
const bytesPerWrite = 16 * 1024;
/** Most bytes of one write, so that a stalled reader leaves little inside the server library. */
const pieceBytes = 64 * 1024;

/** Sent as heartbeat, and where a write is needed but nothing is due. */
export const comment: Uint8Array = Buffer.from(':\n\n');
const endOfSource: Uint8Array = Buffer.from('');

export const sseHeaders = [
  ['content-type', 'text/event-stream'],
  ['cache-control', 'no-store'],
  ['x-accel-buffering', 'no'],
] as const;

/**
 * One SSE connection: preserves the order of frames and bounds the waiting ones. Adapters add the writing.
 * Few fields and no closures here: thousands of these sit idle.
 */
export abstract class SseReader {
  channel: Channel | undefined;
  /** The first batch of its channel that is meant for this reader. */
  from = 0;
  /** The last write left bytes behind: the rest waits until the adapter calls `flush`. */
  blocked = false;
  #ending = false;
  #queue: Uint8Array[] | undefined;
  #queuedBytes = 0;
  /** Queued bytes of replayed history: their frames are held by the source anyway, so they are not held against the reader. */
  #history = 0;

  /** Writes one piece at once (never queues outside the server library). False when bytes were left behind. */
  protected abstract write(piece: Uint8Array): boolean;
  /** Ends the stream after the written frames. */
  protected abstract finish(): void;
  /** Cuts the connection without ceremony; leads to `gone`. */
  protected abstract cut(): void;

  begin(preamble: Uint8Array, history: readonly Uint8Array[]): void {
    this.#queue = [preamble, ...history];
    this.#queuedBytes = history.reduce((sum, frame) => sum + frame.byteLength, preamble.byteLength);
    this.#drain();
    this.#history = this.#queuedBytes;
  }

  push(batch: Uint8Array, limit: number): void {
    if (batch === endOfSource) {
      this.end();
    } else if (!this.blocked && batch.byteLength <= pieceBytes) {
      this.blocked = !this.write(batch);
    } else if (!this.blocked || batch !== comment) {
      this.#queue ??= [];
      this.#queue.push(batch);
      this.#queuedBytes += batch.byteLength;
      if (!this.blocked) this.#drain();
      if (this.#queuedBytes > limit + this.#history) this.cut();
    }
  }

  /**
   * The connection takes bytes again. With nothing queued a comment is written: uWebSockets.js keeps the tail of its own
   * buffer until the next write, and rearms its 10-second cut unless the write gets through.
   */
  flush(): void {
    this.blocked = false;
    if (this.#queue === undefined) this.blocked = !this.write(comment);
    else this.#drain();
    this.#history = Math.min(this.#history, this.#queuedBytes);
    this.#finishIfDue();
  }

  end(): void {
    this.#ending = true;
    this.#finishIfDue();
  }

  gone(): void {
    this.#queue = undefined;
    this.channel?.remove(this);
  }

  #finishIfDue(): void {
    if (!this.#ending || this.blocked) return;
    this.finish();
    this.channel?.remove(this);
  }

  #drain(): void {
    const queue = this.#queue ?? [];
    let next = 0;
    while (next < queue.length && !this.blocked) {
      const first = next;
      let size = 0;
      while (next < queue.length && size + (queue[next]?.byteLength ?? 0) <= pieceBytes) {
        size += queue[next]?.byteLength ?? 0;
        next += 1;
      }
      let piece: Uint8Array | undefined;
      if (next === first) {
        // One frame larger than a piece: its head goes out, its tail stays first in the queue.
        piece = queue[next]?.subarray(0, pieceBytes);
        queue[next] = queue[next]?.subarray(pieceBytes) ?? comment;
      } else {
        piece = next === first + 1 ? queue[first] : Buffer.concat(queue.slice(first, next));
      }
      if (piece === undefined) break;
      this.#queuedBytes -= piece.byteLength;
      this.blocked = !this.write(piece);
    }
    this.#queue = next === queue.length ? undefined : queue.slice(next);
  }
}

/** Pieces of the last round, as few writes: up to `pieceBytes` each; markers stay by themselves. */
function joinedPieces(batches: Uint8Array[]): Uint8Array[] {
  if (batches.length < 2) return batches;
  const pieces: Uint8Array[] = [];
  let open: Uint8Array[] = [];
  let size = 0;
  const close = (): void => {
    const [only] = open;
    if (only !== undefined) pieces.push(open.length === 1 ? only : Buffer.concat(open));
    open = [];
    size = 0;
  };
  for (const batch of batches) {
    const isMarker = batch === comment || batch === endOfSource;
    if (isMarker || size + batch.byteLength > pieceBytes) close();
    if (isMarker) pieces.push(batch);
    else {
      open.push(batch);
      size += batch.byteLength;
    }
  }
  close();
  return pieces;
}

/** All readers of one source: subscribes once, writes each batch to everybody, in turns. */
class Channel {
  readonly readers = new Set<SseReader>();
  /** Number of the next batch. A reader that joins now gets it, and none before. */
  next = 0;
  ended = false;
  readonly #limit: number;
  readonly #onEmpty: (channel: Channel) => void;
  #queue: Uint8Array[] = [];
  #turn:
    | { batches: Uint8Array[]; joined: Uint8Array[]; first: number; writes: number; readers: Iterator<SseReader> }
    | undefined;
  unsubscribe: () => void = () => {};

  constructor(limit: number, onEmpty: (channel: Channel) => void) {
    this.#limit = limit;
    this.#onEmpty = onEmpty;
  }

  publish(batch: Uint8Array): void {
    this.#queue.push(batch);
    this.next += 1;
    if (this.#turn === undefined) this.#round();
  }

  end(): void {
    if (this.ended) return;
    this.ended = true;
    this.publish(endOfSource);
  }

  remove(reader: SseReader): void {
    if (this.readers.delete(reader)) this.#onEmpty(this);
  }

  #round(): void {
    const batches = this.#queue;
    this.#queue = [];
    const joined = joinedPieces(batches);
    // A reader that joins during the round is visited too, and gets nothing: its `from` lies past these batches.
    const writes = joined.reduce((sum, batch) => sum + 1 + batch.byteLength / bytesPerWrite, 0);
    this.#turn = { batches, joined, first: this.next - batches.length, writes, readers: this.readers.values() };
    this.#continue();
  }

  readonly #continue = (): void => {
    const turn = this.#turn;
    if (turn === undefined) return;
    for (let spent = 0; spent < writesPerTurn; spent += turn.writes) {
      const { value: reader, done } = turn.readers.next();
      if (done === true) {
        this.#turn = undefined;
        if (this.#queue.length > 0) this.#round();
        return;
      }
      if (reader.from <= turn.first) {
        for (const piece of turn.joined) reader.push(piece, this.#limit);
        continue;
      }
      for (let index = Math.max(0, reader.from - turn.first); index < turn.batches.length; index += 1) {
        const batch = turn.batches[index];
        if (batch !== undefined) reader.push(batch, this.#limit);
      }
    }
    setImmediate(this.#continue);
  };
}

/** The SSE side of one server: a channel per source, one heartbeat for all. */
export class SseChannels {
  readonly #limits: Limits;
  readonly #channels = new Map<SseSource, Channel>();
  readonly #preamble: Uint8Array;
  readonly #onReaderGone: () => void;
  #heartbeat: NodeJS.Timeout | undefined;
  readers = 0;

  constructor(limits: Limits, onReaderGone: () => void) {
    this.#limits = limits;
    this.#preamble = Buffer.from(`: connected\n\nretry: ${limits.sseRetryMs}\n\n`);
    this.#onReaderGone = onReaderGone;
  }

  /** Adds a reader whose status and headers are written (corked, if the library can): the first bytes follow here. */
  join(source: SseSource, history: readonly Uint8Array[], reader: SseReader): void {
    const channel = this.#channel(source);
    reader.channel = channel;
    reader.from = channel.next;
    channel.readers.add(reader);
    this.readers += 1;
    this.#heartbeat ??= setInterval(() => this.#beat(), this.#limits.sseHeartbeatMs).unref();
    reader.begin(this.#preamble, history);
    if (channel.ended) reader.end();
  }

  #channel(source: SseSource): Channel {
    const known = this.#channels.get(source);
    if (known !== undefined) return known;
    const channel = new Channel(this.#limits.sseBufferBytes, (emptied) => this.#left(source, emptied));
    this.#channels.set(source, channel);
    channel.unsubscribe = source.subscribe(
      (batch) => channel.publish(batch),
      () => channel.end(),
    );
    return channel;
  }

  #left(source: SseSource, channel: Channel): void {
    this.readers -= 1;
    if (channel.readers.size === 0) {
      this.#channels.delete(source);
      channel.unsubscribe();
    }
    this.#onReaderGone();
  }

  #beat(): void {
    if (this.readers === 0) this.dispose();
    for (const channel of this.#channels.values()) if (!channel.ended) channel.publish(comment);
  }

  /** Ends every stream after its queued frames. */
  end(): void {
    for (const channel of this.#channels.values()) channel.end();
  }

  dispose(): void {
    clearInterval(this.#heartbeat);
    this.#heartbeat = undefined;
  }
}

export type { Channel };
