import type { Readable } from 'node:stream';
import { StringDecoder } from 'node:string_decoder';

/** A command that writes without end is read at this pace: the rest of the server has to breathe. */
const burstBytes = 1_048_576;
const pauseMs = 5;

/**
 * Reads a pipe as UTF-8 until it ends or is stopped; what is not UTF-8 becomes U+FFFD.
 * @returns `ended`, which never rejects, and `stop`, after which nothing more is passed on
 */
export function readText(
  pipe: Readable | null,
  onText: (text: string) => void,
): { readonly ended: Promise<void>; readonly stop: () => void } {
  if (!pipe) return { ended: Promise.resolve(), stop: () => {} };
  const decoder = new StringDecoder('utf8');
  let burst = 0;
  let pause: NodeJS.Timeout | undefined;
  const tell = (chunk: Buffer): void => {
    onText(decoder.write(chunk));
    burst += chunk.length;
    if (burst < burstBytes) return;
    burst = 0;
    pipe.pause();
    pause = setTimeout(() => pipe.resume(), pauseMs);
  };
  pipe.on('data', tell);
  // A broken pipe ends like any other: the exit of the command says what became of it.
  pipe.on('error', () => {});
  const ended = new Promise<void>((resolve) => pipe.once('close', resolve));
  const stop = (): void => {
    pipe.off('data', tell);
    clearTimeout(pause);
    pipe.destroy();
    const rest = decoder.end();
    if (rest !== '') onText(rest);
  };
  return { ended, stop };
}
