import type { SubmittedFinding } from '../../protocol/index.ts';
import {
  type AnchorError,
  type AnchorResult,
  anchorFinding,
  type DiffFile,
  fingerprintOf,
  obstacleOfFile,
  obstacleOfLines,
  type SuggestionObstacle,
} from '../anchors/index.ts';
import type { AnchoredFinding, ReviewAssignment } from './types.ts';
import { fromVisible } from './visible.ts';

/** A finding of a draft with its place, and the reason why it has no better one. */
export interface PlacedFinding extends AnchoredFinding {
  readonly error?: AnchorError;
}

type Files = ReviewAssignment['diffFiles'];
interface Try {
  readonly finding: SubmittedFinding;
  readonly result: AnchorResult;
}

/** Finds the place of every finding of a draft; one without stands at its file, or in the summary when the file is missing. */
export async function placeFindings(
  { diffFiles, prepared }: Pick<ReviewAssignment, 'diffFiles' | 'prepared'>,
  findings: readonly SubmittedFinding[],
): Promise<PlacedFinding[]> {
  const wanted = new Set<string>();
  // A first pass, to learn which files have to be read: all of them at once.
  for (const finding of findings) {
    tryBoth(diffFiles, finding, (path) => {
      wanted.add(path);
      return null;
    });
  }
  const heads = wanted.size > 0 ? await prepared.readHeadFiles([...wanted]) : new Map<string, string | null>();
  const all = findings.map((finding) =>
    placed(
      tryBoth(diffFiles, finding, (path) => heads.get(path) ?? null),
      diffFiles,
    ),
  );
  return await withoutUnsafeSuggestions(prepared, all);
}

/** Removes every suggestion that might change more bytes of its file than it names. */
async function withoutUnsafeSuggestions(
  prepared: ReviewAssignment['prepared'],
  all: readonly PlacedFinding[],
): Promise<PlacedFinding[]> {
  const paths = all.filter(isChange).map(({ finding }) => finding.path);
  if (paths.length === 0) return [...all];
  const heads = await prepared.readHeadBytes([...new Set(paths)]);
  return all.map((each) => {
    const obstacle = isChange(each) ? obstacleOf(each, heads.get(each.finding.path) ?? null) : null;
    if (obstacle === null || each.anchor.placement !== 'inline') return each;
    const { replacement: _, quoted: __, ...anchor } = each.anchor;
    return { ...each, anchor, obstacle };
  });
}

/** Whether a finding proposes a change of lines that are in the head. */
const isChange = ({ finding: { oldText, newText }, anchor }: PlacedFinding): boolean =>
  newText !== undefined && newText !== oldText && anchor.placement === 'inline' && anchor.side === 'RIGHT';

function obstacleOf({ anchor }: PlacedFinding, bytes: Uint8Array | null): SuggestionObstacle | null {
  const ofFile = obstacleOfFile(bytes);
  if (ofFile !== null || bytes === null || anchor.placement !== 'inline') return ofFile;
  const { replacement, quoted, line, startLine = line } = anchor;
  if (replacement === undefined || !quoted) return 'unclear';
  return obstacleOfLines(bytes, { first: startLine, last: line }, quoted, replacement);
}

/** Places a finding as the model wrote it, or else with the spelled-out characters of the prompt turned back. */
function tryBoth(files: Files, finding: SubmittedFinding, readHead: (path: string) => string | null): Try {
  const asWritten = { finding, result: anchorFinding(files, finding, readHead) };
  if ('anchor' in asWritten.result) return asWritten;
  const meant = unspelled(finding);
  const result = anchorFinding(files, meant, readHead);
  return 'anchor' in result ? { finding: meant, result } : asWritten;
}

function unspelled(finding: SubmittedFinding): SubmittedFinding {
  const { path, oldText, newText } = finding;
  return {
    ...finding,
    path: fromVisible(path),
    ...(oldText !== undefined && { oldText: fromVisible(oldText) }),
    ...(newText !== undefined && { newText: fromVisible(newText) }),
  };
}

function placed({ finding, result }: Try, files: Files): PlacedFinding {
  if ('anchor' in result) return identified(finding, result.anchor, result.file);
  const { error } = result;
  const atFile = anchorFinding(files, { path: finding.path }, () => null);
  if (!('anchor' in atFile)) {
    return { ...identified(finding, { placement: 'summary', reason: 'outsideDiff' }), error };
  }
  return { ...identified(finding, { placement: 'file', reason: 'noText' }, atFile.file), error };
}

/** Names a finding by the present path of its file, and records the path in the base when the change renames it. */
function identified(finding: SubmittedFinding, anchor: AnchoredFinding['anchor'], file?: DiffFile): AnchoredFinding {
  const { path = finding.path, oldPath = null } = file ?? {};
  const { title, severity, oldText } = finding;
  return {
    finding: { ...finding, path },
    anchor,
    fingerprint: fingerprintOf({ path, title, severity, oldText, anchor }),
    ...(oldPath !== null && { oldPath }),
  };
}
