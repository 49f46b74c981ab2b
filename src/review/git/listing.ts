import type { ChangedFile } from './types.ts';

/** Part of the output before the patch. */
export interface Listing {
  readonly files: ChangedFile[];
  /** Start of the patch; null when it is missing or was cut off. */
  readonly end: number | null;
}

interface RawEntry {
  readonly path: Buffer;
  readonly oldPath: Buffer | null;
  readonly letter: string;
  /** Mode of the present entry, or of the removed one. */
  readonly mode: string;
  readonly isSubmodule: boolean;
}

interface Count {
  readonly path: Buffer;
  readonly added: string;
  readonly removed: string;
}

const statuses: Readonly<Record<string, ChangedFile['status']>> = {
  A: 'added',
  D: 'deleted',
  M: 'modified',
  T: 'modified',
  R: 'renamed',
};
const colon = 0x3a;
const nothing = Buffer.alloc(0);

/**
 * Reads the output of `diff-tree --raw --numstat -z -p`. Names end with NUL, so they may hold any other byte; an empty field
 * ends the listing.
 */
export function parseListing(output: Buffer): Listing {
  const fields = fieldsOf(output);
  const next = () => fields.next().value?.bytes ?? nothing;
  const entries: RawEntry[] = [];
  const counts = new Map<string, Count>();
  let end: number | null = null;
  for (const { bytes, after } of fields) {
    if (bytes.length === 0) {
      end = after;
      break;
    }
    if (bytes[0] === colon) {
      entries.push(readEntry(bytes, next));
    } else {
      const count = readCount(bytes, next);
      counts.set(count.path.toString('latin1'), count);
    }
  }
  return { files: entries.map((entry) => changedFile(entry, counts.get(entry.path.toString('latin1')))), end };
}

/** `:mode mode sha sha status`, then one name, or two of a rename. */
function readEntry(head: Buffer, next: () => Buffer): RawEntry {
  const [oldMode = '', newMode = '', , , status = ''] = head.toString('latin1', 1).split(' ');
  const oldPath = status.startsWith('R') ? next() : null;
  return {
    path: next(),
    oldPath,
    letter: status.slice(0, 1),
    mode: status === 'D' ? oldMode : newMode,
    isSubmodule: oldMode === '160000' || newMode === '160000',
  };
}

/** `added<TAB>removed<TAB>name`; for a rename the name is empty, and both names follow. */
function readCount(head: Buffer, next: () => Buffer): Count {
  const tab = head.indexOf(0x09);
  const second = head.indexOf(0x09, tab + 1);
  const added = head.toString('latin1', 0, tab);
  const removed = head.toString('latin1', tab + 1, second);
  if (second + 1 < head.length) return { path: head.subarray(second + 1), added, removed };
  next();
  return { path: next(), added, removed };
}

function changedFile(entry: RawEntry, { added, removed }: Pick<Count, 'added' | 'removed'> = noCount): ChangedFile {
  const isBinary = added === '-';
  return {
    path: entry.path.toString('utf8'),
    oldPath: entry.oldPath?.toString('utf8') ?? null,
    status: statuses[entry.letter] ?? 'modified',
    isBinary,
    isSubmodule: entry.isSubmodule,
    isSymlink: entry.mode === '120000',
    additions: isBinary ? null : Number(added),
    deletions: isBinary ? null : Number(removed),
    isNameBroken: isBroken(entry.path) || (entry.oldPath !== null && isBroken(entry.oldPath)),
  };
}

const noCount = { added: '0', removed: '0' };
const isBroken = (name: Buffer): boolean => !Buffer.from(name.toString('utf8')).equals(name);

/** The fields of an output made with `-z`, each with the offset after its end. */
function* fieldsOf(output: Buffer): Generator<{ readonly bytes: Buffer; readonly after: number }, undefined> {
  for (let start = 0; start < output.length; ) {
    const end = output.indexOf(0, start);
    const stop = end === -1 ? output.length : end;
    yield { bytes: output.subarray(start, stop), after: stop + 1 };
    start = stop + 1;
  }
}

/** The fields of a listing made with `-z`. */
export const splitAtNul = (listing: Buffer): Buffer[] => Array.from(fieldsOf(listing), ({ bytes }) => bytes);
