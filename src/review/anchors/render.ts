import { backTickFence } from '../../lib/index.ts';
import type { Severity } from '../../protocol/index.ts';
import type { Anchor } from './anchor.ts';
import { closeFences } from './markdown.ts';
import { codeSpan, cut } from './render-text.ts';
import type { SkipReason } from './select-files.ts';

/** Hidden marks of a published text, by which an earlier write is found again. */
export const markers = {
  review: (runId: string) => `<!-- oratorio:review:${runId} -->`,
  finding: (findingId: string) => `<!-- oratorio:finding:${findingId} -->`,
  summary: (itemId: string) => `<!-- oratorio:summary:${itemId} -->`,
  reply: (commentId: number, refusal?: string) =>
    `<!-- oratorio:reply:${commentId}${refusal === undefined ? '' : `:${refusal}`} -->`,
} as const;

/** GitHub takes 65 536 characters; hidden marks and quotations need some of them. */
export const longestBody = 60_000;

const labels: Readonly<Record<Severity, string>> = {
  critical: '🟥 **Critical**',
  major: '🟧 **Major**',
  minor: '🟨 **Minor**',
  note: '⬜ **Note**',
};

/** A finding for publication. Title and body went through `scanOutput`, the replacement through `scanCode`. */
export interface RenderedFinding {
  readonly findingId: string;
  readonly severity: Severity;
  readonly title: string;
  readonly body: string;
  readonly path: string;
  readonly anchor: Anchor;
}

/**
 * Text of one comment: the severity in a word, the title, the reason, and the change that GitHub can apply, where there is one
 * (GitHub Docs, "Incorporating feedback in your pull request").
 */
export function renderComment({ findingId, severity, title, body, anchor }: RenderedFinding): string {
  const mark = markers.finding(findingId);
  const suggestion = suggestionOf(anchor);
  const head = `${labels[severity]}: ${oneLine(title)}`;
  const room = longestBody - head.length - mark.length - suggestion.length - 6;
  // A suggestion is whole or not there.
  if (room < 0) return `${head}\n\n${cut(closeFences(body), longestBody - head.length - mark.length - 4)}\n\n${mark}`;
  return joined([head, cut(closeFences(body), room), suggestion, mark]);
}

function suggestionOf(anchor: Anchor): string {
  if (anchor.placement !== 'inline' || anchor.replacement === undefined) return '';
  const mark = backTickFence(anchor.replacement);
  // An empty suggestion removes the lines; with a line end it would leave an empty one.
  return `${mark}suggestion\n${anchor.replacement === '' ? '' : `${anchor.replacement}\n`}${mark}`;
}

const joined = (parts: readonly string[]): string => parts.filter((part) => part !== '').join('\n\n');
const oneLine = (text: string): string => text.replace(/\s+/g, ' ').trim();

export interface SummaryFacts {
  readonly itemId: string;
  readonly headSha: string;
  readonly summary: string;
  /** Findings published in this review, at their place. */
  readonly inline: number;
  /** Findings published only here: those without a line, and those beyond the limit. */
  readonly listed: readonly RenderedFinding[];
  /** Open findings of earlier reviews that are published only here: the summary takes the place of the earlier one. */
  readonly earlier: readonly RenderedFinding[];
  readonly stillOpen: number;
  readonly resolved: number;
  readonly reviewedFiles: number;
  readonly totalFiles: number;
  readonly skipped: readonly { readonly path: string; readonly reason: SkipReason }[];
  readonly sinceSha: string | null;
}

/** Names of files in the summary, which counts the rest. */
const shownFiles = 30;
/** Characters of the model's own summary, so that there is room for findings. */
const longestSummary = 10_000;

/**
 * The summary that is edited in place: scope, state, and findings without a place in the diff.
 *
 * @returns the text, and the number of findings for which it has no room
 */
export function renderSummary(facts: SummaryFacts): { readonly body: string; readonly unlisted: number } {
  const { headSha, sinceSha, summary, listed, earlier, skipped, itemId } = facts;
  const since = sinceSha === null ? '' : ` (changes since ${sinceSha.slice(0, 7)})`;
  const mark = markers.summary(itemId);
  const before = [
    `### Review of ${headSha.slice(0, 7)}${since}`,
    cut(closeFences(summary), longestSummary),
    countsOf(facts),
  ];
  const after = [skippedList(skipped), mark];
  const room = longestBody - joined([...before, stillOpenText, ...after]).length - 6;
  const first = findingList(listed, room);
  const second = findingList(earlier, room - first.text.length);
  const open = earlier.length > 0 ? [stillOpenText, second.text] : [];
  return { body: joined([...before, first.text, ...open, ...after]), unlisted: first.unlisted + second.unlisted };
}
const stillOpenText = 'Still open:';

function countsOf({ inline, listed, stillOpen, resolved, reviewedFiles, totalFiles }: SummaryFacts): string {
  const found = inline + listed.length;
  return [
    found === 0 ? 'No new findings.' : `${found} new finding${found === 1 ? '' : 's'}.`,
    ...(stillOpen > 0 ? [`${stillOpen} of before still open.`] : []),
    ...(resolved > 0 ? [`${resolved} resolved.`] : []),
    `Reviewed ${reviewedFiles} of ${totalFiles} changed file${totalFiles === 1 ? '' : 's'}.`,
  ].join(' ');
}

const reasonText: Readonly<Record<SkipReason, string>> = {
  generated: 'generated',
  lockfile: 'lock file',
  vendored: 'code of others',
  binary: 'binary',
  submodule: 'submodule',
  ignored: 'ignored by the settings',
  tooLarge: 'beyond the size limit of one review',
  tooMany: 'beyond the number of files of one review',
};

function skippedList(skipped: SummaryFacts['skipped']): string {
  if (skipped.length === 0) return '';
  const lines = skipped
    .slice(0, shownFiles)
    .map(({ path, reason }) => `- ${codeSpan(path.slice(0, 500))}: ${reasonText[reason]}`);
  const more = skipped.length > shownFiles ? [`- and ${skipped.length - shownFiles} more`] : [];
  return `<details><summary>Not reviewed: ${skipped.length}</summary>\n\n${[...lines, ...more].join('\n')}\n\n</details>`;
}

/** Lists findings within the room: first with their full text, then by their titles, then by their number. */
function findingList(
  findings: readonly RenderedFinding[],
  room: number,
): { readonly text: string; readonly unlisted: number } {
  const items: string[] = [];
  let left = room - 40;
  let unlisted = 0;
  for (const [index, finding] of findings.entries()) {
    const title = itemTitle(finding);
    const whole = `${title}\n${closeFences(finding.body).replace(/^(?=.)/gm, '  ')}`;
    const item = [whole, title].find((each) => each.length < left);
    if (item === undefined) {
      unlisted = findings.length - index;
      items.push(`- and ${unlisted} more`);
      break;
    }
    items.push(item);
    left -= item.length + 1;
  }
  return { text: items.join('\n'), unlisted };
}

const itemTitle = ({ severity, title, path }: RenderedFinding): string =>
  `- ${labels[severity]}: ${oneLine(title)} (${codeSpan(path)})`;
