import { commentableRanges, type DiffFile, parseDiff } from '../../anchors/index.ts';
import { FileList } from '../answers.ts';
import { parseAnswer } from '../client.ts';
import type { SourceError } from '../errors.ts';
import type { ReviewComment, ReviewRequest } from './requests.ts';
import type { Target } from './target.ts';

export interface Isolation {
  readonly good: readonly ReviewComment[];
  readonly bad: readonly ReviewComment[];
}
/** Whether GitHub would take a review. */
type Probe = (target: Target, request: ReviewRequest) => Promise<boolean>;

/**
 * Finds the comments that make GitHub refuse a review. Comments that do not fit GitHub's current diff are bad; the rest is halved
 * until GitHub takes it. Bounded: a comment that no probe has shown to be good counts as bad.
 * @throws SourceError: `refusal`, when it is not for the comments
 */
export async function isolate(
  target: Target,
  request: ReviewRequest,
  probe: Probe,
  refusal: SourceError,
): Promise<Isolation> {
  let probes = target.limits.probes;
  const isTaken = async (comments: readonly ReviewComment[]): Promise<boolean> => {
    probes -= 1;
    return probe(target, { ...request, comments: [...comments] });
  };
  if (!(await isTaken([]))) throw refusal;
  const files = await changedFiles(target, request.number);
  const standing = request.comments.filter((comment) => stands(files, comment));
  const halve = async (comments: readonly ReviewComment[]): Promise<readonly ReviewComment[]> => {
    if (comments.length === 0 || probes <= 0) return [];
    if (await isTaken(comments)) return comments;
    if (comments.length === 1) return [];
    const middle = Math.ceil(comments.length / 2);
    return [...(await halve(comments.slice(0, middle))), ...(await halve(comments.slice(middle)))];
  };
  const good = await halve(standing);
  return { good, bad: request.comments.filter((comment) => !good.includes(comment)) };
}

async function changedFiles({ api }: Target, number: number): Promise<ReadonlyMap<string, DiffFile | undefined>> {
  const files = new Map<string, DiffFile | undefined>();
  const route = 'GET /repos/{owner}/{repo}/pulls/{pull_number}/files';
  for await (const { data } of api.pages(route, { pull_number: number })) {
    for (const { filename, patch } of parseAnswer(FileList, data, 'files')) {
      // The patch alone is not a diff: it needs a header. The name in it does not matter.
      files.set(filename, patch === undefined ? undefined : parseDiff(`diff --git a/x b/x\n${patch}`)[0]);
    }
  }
  return files;
}

/** Whether a comment fits the diff. GitHub leaves out patches that are too large: then only GitHub knows. */
function stands(
  files: ReadonlyMap<string, DiffFile | undefined>,
  { path, side, line, startLine, startSide }: ReviewComment,
): boolean {
  if (!files.has(path)) return false;
  const file = files.get(path);
  if (!file) return true;
  if (startSide !== undefined && startSide !== side) return true;
  const from = startLine ?? line;
  return commentableRanges(file, side).some(([first, last]) => first <= from && line <= last);
}
