import { appendFile, rename, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import * as v from 'valibot';
import { fileFault, messageOf, readBoundedFile } from '../../lib/index.ts';
import type { Logger } from '../../log/index.ts';
import { InboxHistoryEntry } from '../../protocol/index.ts';
import { ensurePrivateDirectory } from '../../supervise/index.ts';

/** Size at which a new file is begun. The one before stays, so that twice as much is on disk. */
const maxFileBytes = 1_048_576;

const Line = v.pipe(v.string(), v.parseJson(), InboxHistoryEntry);

/**
 * The record of decisions: author, decision, time and client of each, one JSON object a line, in `<home>/hub/inbox.jsonl` (0600).
 * The user reads it; no decision waits for it, and none is taken from it.
 */
export class DecisionLog {
  readonly #file: string;
  readonly #logger: Logger;
  readonly #maxBytes: number;
  #writing: Promise<void> = Promise.resolve();

  constructor(statePath: string, logger: Logger, maxBytes: number = maxFileBytes) {
    this.#file = join(statePath, 'inbox.jsonl');
    this.#logger = logger;
    this.#maxBytes = maxBytes;
  }

  add(entry: InboxHistoryEntry): void {
    this.#writing = this.#writing.then(() => this.#append(entry));
  }

  /** The last decisions, newest first. Lines that cannot be read are left out. */
  async read(limit: number): Promise<InboxHistoryEntry[]> {
    await this.#writing;
    const newest = entriesOf(textOf(this.#file));
    const older = newest.length < limit ? entriesOf(textOf(`${this.#file}.1`)) : [];
    return [...older, ...newest].slice(-limit).reverse();
  }

  /** Resolves when every decision is on disk. */
  flush(): Promise<void> {
    return this.#writing;
  }

  async #append(entry: InboxHistoryEntry): Promise<void> {
    try {
      ensurePrivateDirectory(dirname(this.#file));
      const fault = fileFault(this.#file);
      if (fault) throw fault;
      const line = `${JSON.stringify(entry)}\n`;
      const size = await stat(this.#file).then(
        (found) => found.size,
        () => 0,
      );
      if (size > 0 && size + Buffer.byteLength(line) > this.#maxBytes) await rename(this.#file, `${this.#file}.1`);
      await appendFile(this.#file, line, { mode: 0o600 });
    } catch (error) {
      this.#logger.warn('could not record a decision of the inbox', {
        requestId: entry.requestId,
        reason: messageOf(error),
      });
    }
  }
}

const textOf = (file: string): string => readBoundedFile(file, { maxBytes: 2 * maxFileBytes }) ?? '';

function entriesOf(text: string): InboxHistoryEntry[] {
  return text.split('\n').flatMap((line) => {
    const parsed = v.safeParse(Line, line);
    return parsed.success ? [parsed.output] : [];
  });
}
