import type { GitLimits } from './limits.ts';
import type { GitRunner } from './runner.ts';
import { together } from './together.ts';
import type { Change, ChangedFile } from './types.ts';

export interface ChangeContext {
  readonly git: GitRunner;
  readonly gitDir: string;
  readonly limits: GitLimits;
  readonly signal: AbortSignal | undefined;
}

/** Nothing that a configuration or an attribute could turn into a program or a blind spot. */
const common = ['diff-tree', '-r', '--no-ext-diff', '--no-textconv', '--no-color', '--ignore-submodules=none'];

/** What differs between the trees of two commits. */
export async function changeBetween(context: ChangeContext, from: string, to: string): Promise<Change> {
  const { git, gitDir, limits, signal } = context;
  const args = [...common, '-M', `-l${limits.renameLimit}`];
  const [listing, patch] = await together([
    git.run({
      gitDir,
      signal,
      args: [...args, '--raw', '--numstat', '-z', '--full-index', from, to],
      maxBytes: limits.listingBytes,
    }),
    git.run({
      gitDir,
      signal,
      args: [...args, '-p', '-U3', '--src-prefix=a/', '--dst-prefix=b/', '--submodule=short', from, to],
      maxBytes: limits.diffBytes,
      mayCut: true,
    }),
  ]);
  const files = parseChanges(listing.stdout);
  if (!patch.isCut) return { files, diff: patch.stdout.toString('utf8'), isDiffCut: false };
  return { files, diff: wholeFiles(patch.stdout), isDiffCut: true };
}

/** Up to the last file that began: it may be cut itself. */
function wholeFiles(patch: Buffer): string {
  const last = patch.lastIndexOf('\ndiff --git ');
  return last === -1 ? '' : patch.toString('utf8', 0, last + 1);
}

interface RawEntry {
  readonly path: Buffer;
  readonly oldPath: Buffer | null;
  readonly letter: string;
  /** Of what is there now, or was there. */
  readonly mode: string;
  readonly isSubmodule: boolean;
}

const statuses: Readonly<Record<string, ChangedFile['status']>> = {
  A: 'added',
  D: 'deleted',
  M: 'modified',
  T: 'modified',
  R: 'renamed',
};

/** Reads what `diff-tree --raw --numstat -z` printed: names are ended by NUL, so they may hold anything else. */
export function parseChanges(listing: Buffer): ChangedFile[] {
  const fields = splitAtNul(listing);
  const entries: RawEntry[] = [];
  const counts = new Map<string, readonly [added: string, removed: string]>();
  for (let at = 0; at < fields.length; ) {
    const head = textOf(fields[at]);
    if (head.startsWith(':')) {
      const [oldMode = '', mode = '', , , status = ''] = head.slice(1).split(' ');
      const isRename = status.startsWith('R');
      const path = fields[at + (isRename ? 2 : 1)] ?? Buffer.alloc(0);
      entries.push({
        path,
        oldPath: isRename ? (fields[at + 1] ?? null) : null,
        letter: status.slice(0, 1),
        mode: status === 'D' ? oldMode : mode,
        isSubmodule: oldMode === '160000' || mode === '160000',
      });
      at += isRename ? 3 : 2;
    } else {
      const [added = '', removed = ''] = head.split('\t', 2);
      const prefix = added.length + removed.length + 2;
      const isRename = (fields[at]?.length ?? 0) === prefix;
      const path = isRename ? fields[at + 2] : fields[at]?.subarray(prefix);
      counts.set(path?.toString('latin1') ?? '', [added, removed]);
      at += isRename ? 3 : 1;
    }
  }
  return entries.map((entry) => changedFile(entry, counts.get(entry.path.toString('latin1'))));
}

function changedFile(entry: RawEntry, counts: readonly [string, string] | undefined): ChangedFile {
  const [added = '0', removed = '0'] = counts ?? [];
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

const isBroken = (name: Buffer): boolean => !Buffer.from(name.toString('utf8')).equals(name);
const textOf = (field: Buffer | undefined): string => field?.toString('latin1') ?? '';

/** The fields of a listing made with `-z`. */
export function splitAtNul(listing: Buffer): Buffer[] {
  const fields: Buffer[] = [];
  for (let start = 0; start < listing.length; ) {
    const end = listing.indexOf(0, start);
    const stop = end === -1 ? listing.length : end;
    fields.push(listing.subarray(start, stop));
    start = stop + 1;
  }
  return fields;
}
