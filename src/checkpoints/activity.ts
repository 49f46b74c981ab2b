import { closeSync, constants, openSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import * as v from 'valibot';
import { FileRefusedError, readBoundedFile } from '../lib/index.ts';
import { type Owner, ownerKey } from './owner.ts';

const { O_WRONLY, O_CREAT, O_NOFOLLOW = 0, O_NONBLOCK = 0 } = constants;

/** Time between two notes while a call of a turn runs. */
const beatMs = 250;

const Activity = v.object({ at: v.number(), working: v.array(v.string()) });

/** Last moment at which turns were known to work in a tree. */
export interface LastActivity {
  /** Wall-clock time in milliseconds. */
  readonly at: number;
  /** Whether a call of the turn ran at that moment. */
  isWorking(turn: Owner): boolean;
}

export const activityIn = (directory: string): string => join(directory, 'activity');

/**
 * Notes in a file when turns work in a tree: when a call begins, when it ends, and every 250 ms while one runs. After a crash, a
 * later change of a file is not the turn's. One small write each, without a flush: the note survives the process, not the machine.
 */
export class ActivityNotes {
  readonly #file: string;
  readonly #working = new Map<string, number>();
  #fd: number | undefined;
  #timer: NodeJS.Timeout | undefined;

  /** @param directory of the store */
  constructor(directory: string) {
    this.#file = activityIn(directory);
  }

  /** Notes that a call of a turn begins. @returns notes its end; repeated calls have no effect */
  begin(turn: Owner): () => void {
    const key = ownerKey(turn);
    this.#working.set(key, (this.#working.get(key) ?? 0) + 1);
    this.#note();
    this.#timer ??= setInterval(() => this.#note(), beatMs).unref();
    let isOpen = true;
    return () => {
      if (!isOpen) return;
      isOpen = false;
      this.#end(key);
    };
  }

  close(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
    if (this.#fd !== undefined) closeSync(this.#fd);
    this.#fd = undefined;
  }

  #end(key: string): void {
    const left = (this.#working.get(key) ?? 1) - 1;
    if (left > 0) this.#working.set(key, left);
    else this.#working.delete(key);
    this.#note();
    if (this.#working.size === 0) this.close();
  }

  #note(): void {
    try {
      this.#fd ??= openSync(this.#file, O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK, 0o600);
      // One write, and readers stop at the line break: a shorter note leaves the end of the longer one behind.
      writeSync(this.#fd, `${JSON.stringify({ at: Date.now(), working: [...this.#working.keys()] })}\n`, 0);
    } catch {
      // Without a note, later changes of a crashed turn count as uncertain: the undo asks.
    }
  }
}

/** Reads the last note of an earlier process. @returns undefined: no note can be read */
export function lastActivity(directory: string): LastActivity | undefined {
  try {
    const [line = ''] = readBoundedFile(activityIn(directory))?.split('\n', 1) ?? [];
    const { at, working } = v.parse(Activity, JSON.parse(line));
    return { at, isWorking: (turn) => working.includes(ownerKey(turn)) };
  } catch (error) {
    if (error instanceof FileRefusedError || error instanceof SyntaxError || v.isValiError(error)) return undefined;
    throw error;
  }
}
