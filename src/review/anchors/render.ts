import type { Severity } from '../../protocol/index.ts';
import type { Anchor } from './anchor.ts';
import type { SkipReason } from './select-files.ts';

/** Hidden in what is published: by it a write that was made already is found again. */
export const markers = {
  review: (runId: string) => `<!-- oratorio:review:${runId} -->`,
  finding: (findingId: string) => `<!-- oratorio:finding:${findingId} -->`,
  summary: (itemId: string) => `<!-- oratorio:summary:${itemId} -->`,
  reply: (commentId: number) => `<!-- oratorio:reply:${commentId} -->`,
} as const;

/** GitHub takes 65 536 characters; what is hidden and what is quoted needs some of them. */
export const longestBody = 60_000;

const labels: Readonly<Record<Severity, string>> = {
  critical: '🟥 **Critical**',
  major: '🟧 **Major**',
  minor: '🟨 **Minor**',
  note: '⬜ **Note**',
};

export interface RenderedFinding {
  readonly findingId: string;
  readonly severity: Severity;
  readonly title: string;
  readonly body: string;
  readonly path: string;
  readonly anchor: Anchor;
}

/** A fence that is longer than any run of back-ticks in what it holds. */
export function fence(text: string): string {
  const longest = Math.max(2, ...[...text.matchAll(/`+/g)].map(([run]) => run.length));
  return '`'.repeat(longest + 1);
}

/** Text of one comment. */
export function renderComment({ findingId, severity, title, body, anchor }: RenderedFinding): string {
  const parts = [`${labels[severity]}: ${title}`, body];
  if (anchor.placement === 'inline' && anchor.replacement !== undefined) {
    const mark = fence(anchor.replacement);
    // An empty suggestion removes the lines; with a line end it would leave an empty one.
    parts.push(`${mark}suggestion\n${anchor.replacement === '' ? '' : `${anchor.replacement}\n`}${mark}`);
  }
  return cut(parts.join('\n\n'), markers.finding(findingId));
}

export interface SummaryFacts {
  readonly itemId: string;
  readonly headSha: string;
  readonly summary: string;
  /** Told in this review, at their place. */
  readonly inline: number;
  /** Told only here: what has no line, and what was too much. */
  readonly listed: readonly RenderedFinding[];
  readonly stillOpen: number;
  readonly resolved: number;
  readonly reviewedFiles: number;
  readonly totalFiles: number;
  readonly skipped: readonly { readonly path: string; readonly reason: SkipReason }[];
  readonly sinceSha: string | null;
}

const shownFiles = 30;

/** The summary that is edited in place: what was looked at, how it stands, and what has no place in the diff. */
export function renderSummary(facts: SummaryFacts): string {
  const { inline, listed, stillOpen, resolved, reviewedFiles, totalFiles, skipped, sinceSha, headSha } = facts;
  const found = inline + listed.length;
  const counts = [
    found === 0 ? 'No new findings.' : `${found} new finding${found === 1 ? '' : 's'}.`,
    ...(stillOpen > 0 ? [`${stillOpen} of before still open.`] : []),
    ...(resolved > 0 ? [`${resolved} resolved.`] : []),
  ];
  const since = sinceSha === null ? '' : ` (changes since ${sinceSha.slice(0, 7)})`;
  const parts = [
    `### Review of ${headSha.slice(0, 7)}${since}`,
    ...(facts.summary === '' ? [] : [facts.summary]),
    `${counts.join(' ')} Reviewed ${reviewedFiles} of ${totalFiles} changed file${totalFiles === 1 ? '' : 's'}.`,
    ...(listed.length > 0 ? [listed.map(listItem).join('\n')] : []),
    ...(skipped.length > 0
      ? [
          details(
            `Not reviewed: ${skipped.length}`,
            skipped.slice(0, shownFiles).map(({ path, reason }) => `- ${codeSpan(path)}: ${reasonText[reason]}`),
            skipped.length - shownFiles,
          ),
        ]
      : []),
  ];
  return cut(parts.join('\n\n'), markers.summary(facts.itemId));
}

const reasonText: Readonly<Record<SkipReason, string>> = {
  generated: 'generated',
  lockfile: 'lock file',
  vendored: 'code of others',
  binary: 'binary',
  submodule: 'submodule',
  ignored: 'ignored by the settings',
  tooLarge: 'beyond the size that one review looks at',
  tooMany: 'beyond the number of files that one review looks at',
};

const listItem = ({ severity, title, body, path }: RenderedFinding): string =>
  `- ${labels[severity]}: ${title} (${codeSpan(path)})\n${body.replace(/^/gm, '  ')}`;

/** Text as code, whatever back-ticks are in it (CommonMark §6.1). */
export function codeSpan(text: string): string {
  const plain = text.replace(/\s+/g, ' ');
  const longest = Math.max(0, ...[...plain.matchAll(/`+/g)].map(([run]) => run.length));
  const mark = '`'.repeat(longest + 1);
  const pad = plain.startsWith('`') || plain.endsWith('`') ? ' ' : '';
  return `${mark}${pad}${plain}${pad}${mark}`;
}

function details(title: string, lines: readonly string[], more: number): string {
  const rest = more > 0 ? [`- and ${more} more`] : [];
  return `<details><summary>${title}</summary>\n\n${[...lines, ...rest].join('\n')}\n\n</details>`;
}

/** Whole within GitHub's limit; the mark at the end is never cut off. */
function cut(text: string, mark: string): string {
  const room = longestBody - mark.length;
  return `${text.length > room ? `${text.slice(0, room)}…` : text}\n\n${mark}`;
}
