import { chmodSync, lstatSync, readdirSync } from 'node:fs';
import { setImmediate as nextTurn } from 'node:timers/promises';

/** Files whose rights are changed in one turn of the event loop: about a millisecond. */
const filesPerTurn = 200;
const separator = Buffer.from('/');
const writeRights = 0o222;

/**
 * Removes the right to write from a directory and all entries below it. Links are neither followed nor changed. Names are bytes:
 * not all of them are text.
 *
 * @throws the reason of an aborted signal
 */
export async function makeReadOnly(directory: string, signal: AbortSignal | undefined): Promise<void> {
  let done = 0;
  for (const path of walk(Buffer.from(directory))) {
    const { mode } = lstatSync(path);
    chmodSync(path, mode & 0o7777 & ~writeRights);
    done += 1;
    if (done % filesPerTurn !== 0) continue;
    await nextTurn();
    signal?.throwIfAborted();
  }
}

/** All files and directories below `directory` except links, and the directory itself at the end. */
function* walk(directory: Buffer): Generator<Buffer> {
  for (const entry of readdirSync(directory, { encoding: 'buffer', withFileTypes: true })) {
    const path = Buffer.concat([directory, separator, entry.name]);
    if (entry.isDirectory()) yield* walk(path);
    else if (entry.isFile()) yield path;
  }
  yield directory;
}
