import { closeSync, openSync, writeSync } from 'node:fs';
import * as v from 'valibot';
import { SequentialFile } from '../lib/index.ts';
import { type BytePath, shownPath } from './byte-path.ts';
import type { PathEntry } from './entry.ts';
import { CheckpointError } from './errors.ts';
import { pieceBytes } from './limits.ts';

/** Limits of the files that a conversation takes to another machine. */
export const transferLimits = { entries: 50_000, bytes: 1_073_741_824, lineBytes: 65_536 } as const;

// Shapes of a transfer's lines. The receiver trusts no sender.
const hash = v.pipe(v.string(), v.regex(/^[0-9a-f]{64}$/));
const modeUpTo = (most: number) => v.pipe(v.number(), v.integer(), v.minValue(0), v.maxValue(most));
const size = v.pipe(v.number(), v.integer(), v.minValue(0), v.maxValue(transferLimits.bytes));
const target = v.pipe(
  v.string(),
  v.nonEmpty(),
  v.maxLength(4_096),
  v.check((text) => isBytes(text)),
);
const Entry = v.variant('kind', [
  v.strictObject({ kind: v.literal('file'), mode: modeUpTo(0o777), size, hash, target: v.null() }),
  v.strictObject({ kind: v.literal('directory'), mode: modeUpTo(0o3777), size, hash: v.null(), target: v.null() }),
  v.strictObject({ kind: v.literal('link'), mode: modeUpTo(0o7777), size, hash: v.null(), target }),
]);
const TransferLine = v.pipe(
  v.strictObject({
    path: v.pipe(
      v.string(),
      v.maxLength(4_096),
      v.check((path) => isPlainPath(path)),
    ),
    /** State before the conversation changed it; `clean`: as git has it. */
    before: v.nullable(v.union([Entry, v.literal('clean')])),
    /** State to bring; null: nothing is there. */
    after: v.nullable(Entry),
  }),
  v.check(({ path, after }) => after?.kind !== 'link' || staysInside(path, after.target)),
);
export type TransferLine = {
  readonly path: BytePath;
  readonly before: PathEntry | 'clean' | null;
  readonly after: PathEntry | null;
};

/** One character a byte, without NUL. */
const isBytes = (text: string): boolean =>
  !text.includes('\0') && Buffer.from(text, 'latin1').toString('latin1') === text;

/** Characters that some file systems ignore in names. */
const ignorable = /[\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff]/g;
/** Names that hold programs of git, or our own state. */
const forbidden: ReadonlySet<string> = new Set(['', '.', '..', '.git', '.oratorio', '.oratorio-worktrees']);

function isPlainPath(path: string): boolean {
  if (!isBytes(path)) return false;
  return path.split('/').every((name) => !forbidden.has(shownPath(name).replace(ignorable, '').toLowerCase()));
}

/**
 * Whether a link leads to a place in the tree. Only leading `..` are allowed: one after the name of another link would begin at the
 * target of that link.
 */
function staysInside(path: BytePath, to: string): boolean {
  if (to.startsWith('/')) return false;
  const names = to.split('/').filter((name) => name !== '' && name !== '.');
  const ups = names.findIndex((name) => name !== '..');
  const leading = ups === -1 ? names.length : ups;
  return leading <= path.split('/').length - 1 && !names.slice(leading).includes('..');
}

/** Why no transfer can have an entry; undefined: it can. */
export function problemOf({ path, after }: Pick<TransferLine, 'path' | 'after'>): string | undefined {
  if (after?.kind === 'link' && after.target !== null && !staysInside(path, after.target))
    return 'a link that leads out of the workspace';
  if (v.is(TransferLine, { path, before: null, after })) return undefined;
  return isPlainPath(path)
    ? 'an entry with special rights, or a name that is too long'
    : 'a name of git or of Oratorio';
}

/** Error of a transfer that no genuine machine of this version sends. */
export const invalidTransfer = (reason: string): CheckpointError =>
  new CheckpointError(`${reason}. Install the same version of Oratorio on both machines, then move it again`);

/** Writes the file of a transfer: a line of JSON for each path; after the line of a file, its content. */
export class TransferWriter {
  readonly #fd: number;

  /** @param file in a private directory; replaced */
  constructor(file: string) {
    this.#fd = openSync(file, 'w', 0o600);
  }

  write(line: TransferLine, content: Iterable<Uint8Array>): void {
    this.#all(Buffer.from(`${JSON.stringify(line)}\n`));
    for (const piece of content) this.#all(piece);
  }

  close(): void {
    closeSync(this.#fd);
  }

  #all(bytes: Uint8Array): void {
    for (let done = 0; done < bytes.length; ) done += writeSync(this.#fd, bytes, done);
  }
}

/** Reads the file of a transfer, in the memory of one piece. */
export class TransferReader {
  readonly #file: SequentialFile;

  constructor(file: string) {
    this.#file = new SequentialFile(file, transferLimits.lineBytes);
  }

  /**
   * Lines in the order of their paths. Read the content of a file with `content` before the next line.
   * @throws CheckpointError, Error for anything else than a transfer
   */
  *lines(): Generator<TransferLine> {
    let [entries, bytes, last] = [0, 0, ''];
    for (let line = this.#file.line(); line !== undefined; line = this.#file.line()) {
      const parsed = v.safeParse(v.pipe(v.string(), v.parseJson(), TransferLine), line);
      if (!parsed.success) throw invalidTransfer(`line ${entries + 1} of the transfer is invalid`);
      const { path, after } = parsed.output;
      entries += 1;
      bytes += after?.kind === 'file' ? after.size : 0;
      if (path <= last) throw invalidTransfer('the paths of the transfer are not in order');
      if (entries > transferLimits.entries || bytes > transferLimits.bytes)
        throw invalidTransfer('the transfer is larger than its limits');
      last = path;
      yield parsed.output;
    }
  }

  /** Content of the file of the last line, in the pieces of the store. @throws Error when it is cut off */
  *content(length: number): Generator<Buffer> {
    for (let left = length; ; ) {
      const piece = this.#file.take(Math.min(pieceBytes, left));
      left -= piece.length;
      yield piece;
      if (left === 0) return;
    }
  }

  close(): void {
    this.#file.close();
  }
}
