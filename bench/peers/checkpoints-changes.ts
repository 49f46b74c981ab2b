/** Thread that changes files of the workspace, beside the one that is measured. Replies with the bytes of the changes, compressed one by one. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parentPort } from 'node:worker_threads';
import { zstdCompressSync } from 'node:zlib';

export interface Change {
  readonly root: string;
  readonly count: number;
  /** First line of each file. */
  readonly text: string;
}

parentPort?.on('message', ({ root, count, text }: Change) => {
  let compressed = 0;
  for (let number = 0; number < count; number += 1) {
    const path = join(root, `d${number % 50}`, `e${number % 100}`, `f${Math.floor(number / 100)}`);
    const content = `${text} ${number}\n${readFileSync(path, 'utf8').slice(0, 2_000)}`;
    compressed += zstdCompressSync(content).length;
    writeFileSync(path, content);
  }
  parentPort?.postMessage(compressed);
});
