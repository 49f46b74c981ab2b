import * as v from 'valibot';
import { DraftHunks } from '../../protocol/index.ts';
import {
  type DiffFile,
  type KnownFinding,
  type LineRange,
  movedLines,
  neighboursIn,
  parseDiff,
} from '../anchors/index.ts';
import type { Change, PreparedReview } from '../git/index.ts';
import { hunksFact, type ReviewStore, type StoredFinding, submittedFact } from '../store/index.ts';
import { runLimits } from './limits.ts';
import { type EarlierPlace, Submitted } from './notes.ts';

/** Findings of earlier reviews that are not published again. */
export interface EarlierFindings {
  /** Published and not resolved. */
  readonly open: readonly StoredFinding[];
  /** Dismissed by a user, or skipped in a published draft. */
  readonly refused: readonly StoredFinding[];
}

type Store = Pick<ReviewStore, 'openFindings' | 'drafts' | 'draft' | 'fact'>;

export async function earlierFindings(store: Store, itemId: string, limit: number): Promise<EarlierFindings> {
  const [open, { rows }] = await Promise.all([
    store.openFindings(itemId),
    store.drafts({ itemId, status: 'published', limit }),
  ]);
  const refused = rows
    .flatMap(({ findings }) => findings)
    .filter(({ status, resolution }) => status === 'skipped' || resolution === 'dismissed');
  return { open, refused };
}

/** Lines of a finding; undefined for a finding without a line. */
export const rangeOf = ({
  line,
  startLine = line,
}: Pick<StoredFinding, 'line' | 'startLine'>): LineRange | undefined =>
  line === undefined || startLine === undefined ? undefined : { first: startLine, last: line };

/** Identity of an earlier finding at the present head. */
export function knownFinding(finding: StoredFinding, place: EarlierPlace | undefined): KnownFinding {
  const { path, side, title, body, severity, oldText, status, resolution } = finding;
  const isMoved = place?.state === 'present';
  return {
    ...{ side, title, body, severity, oldText },
    path: place?.path ?? path,
    lines: isMoved ? rangeOf(place) : rangeOf(finding),
    neighbours: place?.neighbours,
    place: place?.state ?? 'unknown',
    isRefused: status === 'skipped' || resolution === 'dismissed',
    submitted: place?.submitted,
  };
}

/** Finds the present places of earlier findings, by the difference between the head of each and the present head. */
export async function earlierPlaces(
  store: Store,
  { changeSince, files }: Pick<PreparedReview, 'changeSince' | 'files'>,
  findings: readonly StoredFinding[],
): Promise<Record<string, EarlierPlace>> {
  const places: Record<string, EarlierPlace> = {};
  const byDraft = Map.groupBy(findings, ({ draftId }) => draftId);
  const changes = new Map<string, Promise<Movement | undefined>>();
  for (const [draftId, ofDraft] of byDraft) {
    const draft = await store.draft(draftId);
    if (!draft) continue;
    const { headSha, runId } = draft;
    const isWithin = changes.has(headSha) || changes.size < runLimits.earlierHeads;
    if (isWithin && !changes.has(headSha)) changes.set(headSha, changeSince(headSha).then(movementOf));
    const movement = await changes.get(headSha);
    const [hunks, submitted] = await Promise.all([hunksOf(store, runId), submittedOf(store, runId)]);
    for (const finding of ofDraft) {
      const { findingId } = finding;
      const place = movement ? placeIn(movement, finding) : placeWithout(files, finding);
      const words = submitted[findingId];
      places[findingId] = { ...place, ...neighboursOf(hunks, finding), ...(words && { submitted: words }) };
    }
  }
  return places;
}

interface Movement extends Pick<Change, 'files'> {
  readonly diff: readonly DiffFile[];
}
const movementOf = (change: Change | null): Movement | undefined =>
  change ? { files: change.files, diff: parseDiff(change.diff) } : undefined;

/** Place of a finding when git cannot compare the commits. A file that the pull request no longer changes was removed or moved. */
const placeWithout = (files: Change['files'], { path }: StoredFinding): EarlierPlace => ({
  path,
  state: files.some((file) => file.path === path || file.oldPath === path) ? 'unknown' : 'gone',
});

function placeIn(movement: Movement, finding: StoredFinding): EarlierPlace {
  const { path } = finding;
  const isOf = (each: { readonly path: string; readonly oldPath: string | null; readonly status: string }) =>
    each.status !== 'added' && (each.oldPath ?? each.path) === path;
  const listed = movement.files.find(isOf);
  const lines = rangeOf(finding);
  if (!listed) return { path, state: 'present', ...lineFields(lines) };
  if (listed.status === 'deleted') return { path, state: 'gone' };
  const file = movement.diff.find(isOf);
  if (!file) return { path: listed.path, state: 'unknown' };
  // A comment on a removed line stays at its line of the base.
  if (!lines || finding.side === 'LEFT') return { path: listed.path, state: 'present', ...lineFields(lines) };
  const moved = movedLines(file, lines);
  return moved ? { path: listed.path, state: 'present', ...lineFields(moved) } : { path: listed.path, state: 'gone' };
}

const lineFields = (lines: LineRange | undefined) => (lines ? { startLine: lines.first, line: lines.last } : {});

const Hunks = v.pipe(v.string(), v.parseJson(), DraftHunks.entries.hunks);
type Hunks = v.InferOutput<typeof Hunks>;

/** Diff lines around the findings of a run. Hunks of another version that do not match the schema count as missing. */
async function hunksOf(store: Store, runId: string): Promise<Hunks> {
  const parsed = v.safeParse(Hunks, await store.fact(hunksFact(runId)));
  return parsed.success ? parsed.output : {};
}

const SubmittedById = v.pipe(v.string(), v.parseJson(), v.record(v.string(), Submitted));

/** Titles and severities of the agent, by finding. */
async function submittedOf(store: Store, runId: string): Promise<v.InferOutput<typeof SubmittedById>> {
  const parsed = v.safeParse(SubmittedById, await store.fact(submittedFact(runId)));
  return parsed.success ? parsed.output : {};
}

/** Saves titles and severities of a new draft, by which its findings are known again after edits of a person. */
export async function saveSubmitted(
  store: Pick<ReviewStore, 'setFact'>,
  runId: string,
  findings: readonly StoredFinding[],
): Promise<void> {
  const byId = findings.map(({ findingId, title, severity }) => [findingId, { title, severity }] as const);
  await store.setFact(submittedFact(runId), byId.length === 0 ? null : JSON.stringify(Object.fromEntries(byId)));
}

function neighboursOf(hunks: Hunks, finding: StoredFinding): Pick<EarlierPlace, 'neighbours'> {
  const hunk = hunks[finding.findingId];
  const lines = rangeOf(finding);
  if (!hunk || !lines) return {};
  const { before, after } = hunkNeighbours(hunk, finding.side, lines);
  return { neighbours: { before: [...before], after: [...after] } };
}

/** Neighbours of lines of a hunk, on one side. */
export const hunkNeighbours = (hunk: Hunks[string], side: StoredFinding['side'], lines: LineRange) =>
  neighboursIn(
    hunk.lines.flatMap(({ text, oldLine, newLine }) => {
      const line = side === 'RIGHT' ? newLine : oldLine;
      return line === undefined ? [] : [{ text, line }];
    }),
    lines,
  );
