import type { DiffFile, DiffHunk, DiffLine } from './diff-types.ts';
import { quotedLength, unquotePath } from './quoted-path.ts';

/** No file has more lines than nine digits count; longer numbers would not even be exact. */
const hunkHeader = /^@@ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@/;
const submoduleMode = '160000';
const symlinkMode = '120000';

interface Draft {
  header: string;
  oldName: string | null;
  newName: string | null;
  renamedFrom: string | null;
  renamedTo: string | null;
  copiedTo: string | null;
  isNew: boolean;
  isDeleted: boolean;
  isBinary: boolean;
  modes: string[];
  hunks: DiffHunk[];
}

/**
 * Reads the output of `git diff` (git-diff(1), "Generating patch text with -p"). Lines end at line feeds only: a carriage return
 * belongs to its line, as it does for git. The header of a hunk counts its lines, so that a removed line `-- x` is not taken for
 * the name of a file. Never throws: a text that is not a diff has no files, and a truncated hunk ends where the text does.
 * Takes time in proportion to the text.
 */
export function parseDiff(text: string): DiffFile[] {
  const lines = text.split('\n');
  // No line follows the last line feed: an empty one would be read as context of a hunk that was cut off.
  const isWhole = lines.at(-1) === '';
  if (isWhole) lines.pop();
  const files: DiffFile[] = [];
  let draft: Draft | undefined;
  let at = 0;
  while (at < lines.length) {
    const line = lines[at] ?? '';
    if (line.startsWith('diff --git ')) {
      if (draft) files.push(fileOf(draft));
      draft = newDraft(line.slice('diff --git '.length));
      at += 1;
    } else if (draft && hunkHeader.test(line)) {
      const { hunk, next } = readHunk(lines, at, isWhole);
      draft.hunks.push(hunk);
      at = next;
    } else {
      // Behind a hunk no line names the file any more, even if it looks like a header.
      if (draft && draft.hunks.length === 0) readHeader(draft, line);
      at += 1;
    }
  }
  if (draft) files.push(fileOf(draft));
  return files;
}

function newDraft(header: string): Draft {
  return {
    header,
    oldName: null,
    newName: null,
    renamedFrom: null,
    renamedTo: null,
    copiedTo: null,
    isNew: false,
    isDeleted: false,
    isBinary: false,
    modes: [],
    hunks: [],
  };
}

function readHeader(draft: Draft, line: string): void {
  const [, word = '', rest = ''] =
    /^(--- |\+\+\+ |rename from |rename to |copy to |new file mode |deleted file mode |old mode |new mode |index )(.*)$/s.exec(
      line,
    ) ?? [];
  switch (word.trim()) {
    case '---':
      draft.oldName = nameOf(rest);
      break;
    case '+++':
      draft.newName = nameOf(rest);
      break;
    case 'rename from':
      draft.renamedFrom = unquotePath(rest);
      break;
    case 'rename to':
      draft.renamedTo = unquotePath(rest);
      break;
    case 'copy to':
      draft.copiedTo = unquotePath(rest);
      break;
    case 'new file mode':
      draft.isNew = true;
      draft.modes.push(rest);
      break;
    case 'deleted file mode':
      draft.isDeleted = true;
      draft.modes.push(rest);
      break;
    case 'old mode':
    case 'new mode':
      draft.modes.push(rest);
      break;
    case 'index':
      draft.modes.push(/ (\d{6})$/.exec(rest)?.[1] ?? '');
      break;
    default:
      if (line.startsWith('Binary files ') || line === 'GIT binary patch') draft.isBinary = true;
  }
}

/** A name behind `---` or `+++`: git ends it with a tab when it has spaces in it. Null for `/dev/null`. */
function nameOf(text: string): string | null {
  const name = unquotePath(text.startsWith('"') ? text.slice(0, quotedLength(text)) : text.replace(/\t$/, ''));
  return name === '/dev/null' ? null : withoutPrefix(name);
}

const withoutPrefix = (name: string): string => name.replace(/^[a-z]\//, '');

/** Path in `a/x b/x`, for a file whose content has no lines: both names are equal then, so the middle separates them. */
function nameInHeader(header: string): string {
  if (header.startsWith('"')) return withoutPrefix(unquotePath(header.slice(0, quotedLength(header))));
  return withoutPrefix(header.slice(0, (header.length - 1) / 2));
}

function fileOf(draft: Draft): DiffFile {
  const { renamedFrom, renamedTo, copiedTo, isNew, isDeleted, isBinary, modes, hunks } = draft;
  const path = renamedTo ?? copiedTo ?? draft.newName ?? draft.oldName ?? nameInHeader(draft.header);
  const status =
    isNew || copiedTo !== null ? 'added' : isDeleted ? 'deleted' : renamedFrom === null ? 'modified' : 'renamed';
  return {
    path,
    oldPath: renamedFrom,
    status,
    isBinary,
    isSubmodule: modes.includes(submoduleMode),
    isSymlink: modes.includes(symlinkMode),
    hunks,
  };
}

/** Lines of a hunk, as many as its header counts; fewer when the text ends before. */
function readHunk(
  lines: readonly string[],
  start: number,
  isWhole: boolean,
): { readonly hunk: DiffHunk; readonly next: number } {
  const [, oldStart = '0', oldCount = '1', newStart = '0', newCount = '1'] = hunkHeader.exec(lines[start] ?? '') ?? [];
  let oldLine = Number(oldStart);
  let newLine = Number(newStart);
  const oldEnd = oldLine + Number(oldCount);
  const newEnd = newLine + Number(newCount);
  const read: DiffLine[] = [];
  let at = start + 1;
  for (; at < lines.length && (oldLine < oldEnd || newLine < newEnd); at += 1) {
    const line = lines[at] ?? '';
    const text = line.slice(1);
    if (line.startsWith('+')) read.push({ kind: 'added', text, oldLine: null, newLine: newLine++ });
    else if (line.startsWith('-')) read.push({ kind: 'removed', text, oldLine: oldLine++, newLine: null });
    // Some tools leave out the space of an empty line.
    else if (line.startsWith(' ') || line === '') {
      read.push({ kind: 'context', text, oldLine: oldLine++, newLine: newLine++ });
    } else if (!line.startsWith('\\')) break;
  }
  // The text ends within this hunk, and perhaps within this line.
  if (!isWhole && at === lines.length && (oldLine < oldEnd || newLine < newEnd)) read.pop();
  return { hunk: { oldStart: Number(oldStart), newStart: Number(newStart), lines: read }, next: at };
}
