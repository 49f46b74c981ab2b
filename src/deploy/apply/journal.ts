import {
  closeSync,
  constants,
  fchmodSync,
  fstatSync,
  fsyncSync,
  ftruncateSync,
  openSync,
  readFileSync,
  writeFileSync,
} from 'node:fs';
import { dirname } from 'node:path';
import * as v from 'valibot';
import { writeFileAtomic } from '../../supervise/index.ts';
import { DeployError } from '../errors.ts';
import type { StackLayout } from '../layout.ts';
import { after, type ChangeState, recordOfChange } from './change-state.ts';
import { type ChangeRecord, type JournalEntry, journalEntrySchema } from './entries.ts';
import { onFile } from './failures.ts';

const { O_RDWR, O_CREAT, O_APPEND, O_RDONLY, O_DIRECTORY = 0, O_NOFOLLOW = 0 } = constants;

/** Ended changes that are remembered. */
const keptChanges = 200;

/** All that a journal says. */
export interface JournalContent {
  /** Oldest first. */
  readonly ended: readonly ChangeRecord[];
  readonly open: ChangeState | null;
  /** Bytes up to the end of the last whole line. */
  readonly bytes: number;
}

/**
 * Reads the journal of a stack; without one nothing has happened. A last line that a kill or a power cut tore is ignored.
 *
 * @throws DeployError fileFailed when it cannot be read, or a line in the middle of it is not ours
 */
export function readJournal({ journal }: StackLayout): JournalContent {
  const content = onFile(journal, () => {
    try {
      return readFileSync(journal);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return Buffer.alloc(0);
      throw error;
    }
  });
  const end = content.lastIndexOf(0x0a) + 1;
  const lines = content.subarray(0, end).toString('utf8').split('\n').slice(0, -1);
  const entries = lines.map(parsed);
  const isTorn = entries.length > 0 && entries.at(-1) === null;
  const whole = isTorn ? entries.slice(0, -1) : entries;
  const broken = whole.indexOf(null);
  if (broken >= 0) {
    throw new DeployError(
      'fileFailed',
      `Line ${broken + 1} of ${journal} is not one this version wrote.`,
      'Use the version that wrote it, or read that line and move the file away.',
    );
  }
  const bytes = isTorn ? content.subarray(0, end - 1).lastIndexOf(0x0a) + 1 : end;
  return { ...folded(whole.filter((entry) => entry !== null)), bytes };
}

function parsed(line: string): JournalEntry | null {
  try {
    const result = v.safeParse(journalEntrySchema, JSON.parse(line));
    return result.success ? result.output : null;
  } catch {
    return null;
  }
}

function folded(entries: readonly JournalEntry[]): Omit<JournalContent, 'bytes'> {
  const ended: ChangeRecord[] = [];
  let open: ChangeState | null = null;
  for (const entry of entries) {
    if (entry.type === 'ended') {
      ended.push(entry.record);
      continue;
    }
    open = after(open, entry);
    if (open === null || open.outcome === 'unfinished') continue;
    ended.push(recordOfChange(open));
    open = null;
  }
  return { ended, open };
}

/** Writes the journal of a stack. Only who holds the lock of the stack does. */
export class Journal {
  readonly #layout: StackLayout;

  constructor(layout: StackLayout) {
    this.#layout = layout;
  }

  /** On disk when it returns; of a line that did not fit nothing stays. */
  append(entry: JournalEntry): void {
    const { journal } = this.#layout;
    onFile(journal, () => {
      const fd = openSync(journal, O_RDWR | O_CREAT | O_APPEND | O_NOFOLLOW, 0o600);
      try {
        const { size } = fstatSync(fd);
        if (size === 0) this.#prepare(fd);
        try {
          writeFileSync(fd, `${JSON.stringify(entry)}\n`);
        } catch (error) {
          ftruncateSync(fd, size);
          throw error;
        }
        fsyncSync(fd);
      } finally {
        closeSync(fd);
      }
    });
  }

  /** Takes away a torn line, after which nothing could be written. @param bytes as `readJournal` found */
  repair(bytes: number): void {
    const { journal } = this.#layout;
    onFile(journal, () => {
      const fd = openSync(journal, O_RDWR | O_CREAT | O_NOFOLLOW, 0o600);
      try {
        if (fstatSync(fd).size !== bytes) ftruncateSync(fd, bytes);
        fsyncSync(fd);
      } finally {
        closeSync(fd);
      }
    });
  }

  /** Keeps of changes that have ended one line each. */
  compact(): void {
    const { journal } = this.#layout;
    const { ended, open } = readJournal(this.#layout);
    if (open) return;
    const lines = ended
      .slice(-keptChanges)
      .map((record) => JSON.stringify({ type: 'ended', record } satisfies JournalEntry));
    onFile(journal, () => writeFileAtomic(journal, `${lines.join('\n')}\n`, { mode: 0o600 }));
  }

  #prepare(fd: number): void {
    fchmodSync(fd, 0o600);
    const directory = openSync(dirname(this.#layout.journal), O_RDONLY | O_DIRECTORY);
    try {
      fsyncSync(directory);
    } finally {
      closeSync(directory);
    }
  }
}
