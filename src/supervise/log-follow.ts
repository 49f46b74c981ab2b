import { type FSWatcher, watch } from 'node:fs';
import { open } from 'node:fs/promises';
import { StringDecoder } from 'node:string_decoder';

/** Settings of `followLog`. */
export interface FollowOptions {
  /** Where to begin, in bytes; default the beginning. */
  readonly fromBytes?: number;
  /** Gets each piece of text as it comes, whole characters only. */
  readonly onText: (text: string) => void;
  /** Ends the following. */
  readonly signal: AbortSignal;
  /** How often to poll when the system reports no change. */
  readonly pollMs?: number;
}

const block = 64 * 1024;

/**
 * Follows a growing file until `signal` aborts, also one that does not exist yet. A file that has become shorter was cut
 * (`capLog`) and is read from its beginning; text that was cut off before it was read is lost. Never keeps the process alive.
 */
export function followLog(file: string, { fromBytes = 0, onText, signal, pollMs = 250 }: FollowOptions): void {
  if (signal.aborted) return;
  let position = fromBytes;
  let decoder = new StringDecoder('utf8');
  let watcher: FSWatcher | undefined;
  let reading = false;
  let again = false;

  async function readNew(): Promise<void> {
    const log = await open(file, 'r');
    try {
      const { size } = await log.stat();
      if (size < position) {
        position = 0;
        decoder = new StringDecoder('utf8');
      }
      const buffer = Buffer.allocUnsafe(Math.min(block, Math.max(1, size - position)));
      while (!signal.aborted) {
        const { bytesRead } = await log.read(buffer, 0, buffer.length, position);
        if (bytesRead === 0 || signal.aborted) return;
        position += bytesRead;
        const text = decoder.write(buffer.subarray(0, bytesRead));
        if (text !== '') onText(text);
      }
    } finally {
      await log.close();
    }
  }

  async function poll(): Promise<void> {
    again = true;
    if (reading) return;
    reading = true;
    while (again && !signal.aborted) {
      again = false;
      // A file that is not there (yet) or cannot be read now is read again with the next tick.
      await readNew().catch(() => {});
    }
    reading = false;
  }

  /** Watching only makes it faster; where it is not possible, the timer does. */
  function tick(): void {
    try {
      watcher ??= watch(file, { persistent: false }, () => void poll()).on('error', stopWatching);
    } catch {
      watcher = undefined;
    }
    void poll();
  }

  function stopWatching(): void {
    watcher?.close();
    watcher = undefined;
  }

  const timer = setInterval(tick, pollMs).unref();
  signal.addEventListener(
    'abort',
    () => {
      clearInterval(timer);
      stopWatching();
    },
    { once: true },
  );
  tick();
}
