import { randomUUID } from 'node:crypto';
import type { FindingHunk } from '../../protocol/index.ts';
import type { AnchoredFinding, ReviewAssignment, ReviewSubmission } from '../agent/index.ts';
import type { DiffFile } from '../anchors/index.ts';
import type { StoredFinding } from '../store/index.ts';
import { earlierFindings, earlierPlaces } from './earlier.ts';
import { hunkAround } from './hunks.ts';
import { type ReviewNotes, saveNotes } from './notes.ts';
import type { Preparation, RunSession } from './session.ts';

/** Second step: runs one turn of the agent. Its submission is stored when this resolves. */
export async function review(session: RunSession, signal: AbortSignal): Promise<void> {
  const { context, preparation } = session;
  if (!preparation) throw new Error('review needs a prepared session');
  await endEarlierTurn(session, preparation.workspacePath);
  const submission = await askAgent(session, preparation, signal);
  signal.throwIfAborted();
  await context.git.verifyClean(preparation.prepared.worktreePath);
  const notes = await notesOf(session, preparation, submission);
  // Facts are written without a check of the lease, so renew it first.
  await session.renew();
  await saveNotes(context.store, session.run.runId, notes);
}

/** Interrupts a turn started by another process or an earlier attempt, so that two turns never run at once. */
async function endEarlierTurn(session: RunSession, workspacePath: string): Promise<void> {
  const { threadId } = session.run;
  if (threadId === null) return;
  await session.context.agent.interrupt(workspacePath, threadId);
  await session.update({ threadId: null, turnId: null });
}

async function askAgent(session: RunSession, preparation: Preparation, signal: AbortSignal): Promise<ReviewSubmission> {
  const { agent, clock } = session.context;
  const turn = { startedAt: clock.now(), lastActivityAt: clock.now() };
  session.turn = turn;
  try {
    return await agent.review(await assignmentOf(session, preparation), {
      signal,
      onTurn: async ({ threadId, turnId }) => session.update({ threadId, turnId }),
      onActivity: () => {
        turn.lastActivityAt = clock.now();
      },
    });
  } finally {
    session.turn = null;
  }
}

async function assignmentOf({ context, run }: RunSession, preparation: Preparation): Promise<ReviewAssignment> {
  const { item, workspacePath, prepared, diffFiles, selection, rules } = preparation;
  const openFindings = await context.store.openFindings(item.itemId);
  const { instructions } = rules;
  const { MaxFindings: maxFindings, MinSeverity: minSeverity } = rules.review;
  return {
    ...{ run, item, workspacePath, prepared, diffFiles, selection },
    ...{ instructions, openFindings, maxFindings, minSeverity },
  };
}

/** Collects the facts for the later steps. @param submission null when no file was selected for review */
export async function notesOf(
  { context, run }: RunSession,
  { item, prepared, diffFiles, selection, rules }: Preparation,
  submission: ReviewSubmission | null,
): Promise<ReviewNotes> {
  const changed = prepared.since ?? prepared;
  const known = new Set([...selection.reviewed, ...selection.skipped].map(({ path }) => path));
  // Files after the cut of a truncated diff are listed as skipped.
  const cut = changed.files.filter(({ path }) => !known.has(path));
  const { open, refused } = await earlierFindings(context.store, item.itemId, context.times.earlierDrafts);
  const places = await earlierPlaces(context.store, prepared, [...open, ...refused]);
  return {
    headSha: run.headSha,
    baseSha: prepared.baseSha,
    sinceSha: prepared.scope === 'incremental' ? run.sinceSha : null,
    summary: submission?.summary ?? '',
    isNothing: submission === null,
    findings: (submission?.findings ?? []).map((each) => ({
      ...each,
      findingId: randomUUID(),
      ...hunkOf(diffFiles, each),
    })),
    withdrawn: [...(submission?.withdrawn ?? [])],
    resolved: [...(submission?.resolved ?? [])],
    earlierPlaces: places,
    goneFindings: await goneOf(prepared, open, places),
    minSeverity: rules.review.MinSeverity,
    maxFindings: rules.review.MaxFindings,
    reviewedFiles: selection.reviewed.length,
    totalFiles: known.size + cut.length,
    skippedFiles: [...selection.skipped, ...cut.map(({ path }) => ({ path, reason: 'tooLarge' }))],
    warnings: [...rules.warnings, ...(submission?.warnings ?? [])],
  };
}

function hunkOf(files: readonly DiffFile[], { finding, anchor }: AnchoredFinding): { readonly hunk?: FindingHunk } {
  const hunk = hunkAround(files, finding.path, anchor);
  return hunk ? { hunk } : {};
}

const plain = (text: string): string => text.replace(/\s+/g, ' ').trim();

/** Ids of findings whose quoted text is no longer in their file, under its present name. */
async function goneOf(
  prepared: Preparation['prepared'],
  open: readonly StoredFinding[],
  places: ReviewNotes['earlierPlaces'],
): Promise<string[]> {
  const pathOf = ({ findingId, path }: StoredFinding) => places[findingId]?.path ?? path;
  const about = open.filter(({ side, oldText }) => side === 'RIGHT' && oldText !== undefined && plain(oldText) !== '');
  const texts = await prepared.readHeadFiles([...new Set(about.map(pathOf))]);
  return about
    .filter((each) => !plain(texts.get(pathOf(each)) ?? '').includes(plain(each.oldText ?? '')))
    .map(({ findingId }) => findingId);
}
