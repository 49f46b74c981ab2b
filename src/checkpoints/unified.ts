import type { StructuredPatch } from 'diff';
import { diffFileLine, diffHead, diffName } from '../protocol/index.ts';
import { type BytePath, shownPath } from './byte-path.ts';
import type { PathEntry } from './entry.ts';

/** One file of a diff. */
export interface UnifiedFile {
  readonly path: BytePath;
  readonly before: PathEntry | undefined;
  readonly after: PathEntry | undefined;
  /** Undefined: the contents are not shown. */
  readonly patch: StructuredPatch | undefined;
}

type Side = PathEntry | undefined;

/** A file in the form of git's diff; empty for a directory. A file that became a link is a removed and an added file. */
export function unifiedText(
  file: UnifiedFile,
  hunksOf: (before: Side, after: Side) => StructuredPatch | undefined,
): string {
  const [before, after] = [fileOnly(file.before), fileOnly(file.after)];
  if (before && after && before.kind !== after.kind) {
    return (
      section(file.path, before, undefined, hunksOf(before, undefined)) +
      section(file.path, undefined, after, hunksOf(undefined, after))
    );
  }
  if (!before && !after) return '';
  const isWhole = before === file.before && after === file.after;
  return section(file.path, before, after, isWhole ? file.patch : hunksOf(before, after));
}

const fileOnly = (entry: Side): Side => (entry?.kind === 'directory' ? undefined : entry);

function section(path: BytePath, before: Side, after: Side, patch: StructuredPatch | undefined): string {
  const shown = shownPath(path);
  const isBytes = Buffer.from(shown).toString('latin1') !== path;
  const name = isBytes ? path : shown;
  const lines = [diffHead(name, isBytes), ...modeLines(before, after)];
  if (!patch) {
    const isSame = before && after && before.hash === after.hash && before.target === after.target;
    const names = [before && diffName(`a/${name}`, isBytes), after && diffName(`b/${name}`, isBytes)];
    if (!isSame) lines.push(`Binary files ${names.map((each) => each ?? '/dev/null').join(' and ')} differ`);
  } else if (patch.hunks.length > 0) {
    lines.push(diffFileLine('---', before && name, isBytes), diffFileLine('+++', after && name, isBytes));
    for (const hunk of patch.hunks) {
      const { oldStart, oldLines, newStart, newLines } = hunk;
      // A hunk without lines on one side begins after the line before it.
      lines.push(
        `@@ -${oldLines === 0 ? oldStart - 1 : oldStart},${oldLines} +${newLines === 0 ? newStart - 1 : newStart},${newLines} @@`,
      );
      for (const line of hunk.lines) lines.push(line);
    }
  }
  return `${lines.join('\n')}\n`;
}

const octal = ({ kind, mode }: PathEntry): string =>
  kind === 'link' ? '120000' : `100${(mode & 0o777).toString(8).padStart(3, '0')}`;

function modeLines(before: Side, after: Side): string[] {
  if (!before) return after ? [`new file mode ${octal(after)}`] : [];
  if (!after) return [`deleted file mode ${octal(before)}`];
  return before.mode === after.mode ? [] : [`old mode ${octal(before)}`, `new mode ${octal(after)}`];
}
