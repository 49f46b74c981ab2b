import * as v from 'valibot';
import { type DynamicToolCall, type DynamicToolResult, ResolvedFinding, SubmittedDraft } from '../../protocol/index.ts';
import { suggestionObstacles } from '../anchors/index.ts';
import { type PlacedFinding, placeFindings } from './placing.ts';
import { resolveTool, submitTool } from './tools.ts';
import type { ReviewAssignment, ReviewSubmission, WithdrawnFinding } from './types.ts';
import { SubmittedFindings } from './withdrawn.ts';

type HandedIn = Pick<ReviewSubmission, 'summary' | 'findings' | 'warnings'>;
type Handler = (args: Readonly<Record<string, unknown>>) => Promise<DynamicToolResult> | DynamicToolResult;

/** Drafts that the model submits: validates each, returns its problems to the model, and retains the last valid one. */
export class DraftSubmissions {
  readonly #assignment: Pick<ReviewAssignment, 'diffFiles' | 'prepared' | 'openFindings'>;
  readonly #maxSubmissions: number;
  readonly #resolved = new Map<string, ReviewSubmission['resolved'][number]>();
  /** Answers by call: a repeated call gets its earlier answer. */
  readonly #answers = new Map<string, Promise<DynamicToolResult>>();
  readonly #handlers: ReadonlyMap<string, Handler> = new Map<string, Handler>([
    [submitTool, (args) => this.#submit(args)],
    [resolveTool, (args) => this.#resolve(args)],
  ]);
  readonly #submitted = new SubmittedFindings();
  #last: Promise<unknown> = Promise.resolve();
  #submissions = 0;
  #draft: HandedIn | undefined;

  constructor(
    assignment: Pick<ReviewAssignment, 'diffFiles' | 'prepared' | 'openFindings'>,
    { submissions }: { readonly submissions: number },
  ) {
    this.#assignment = assignment;
    this.#maxSubmissions = submissions;
  }

  /** The last valid draft; undefined until one has been submitted. */
  get draft(): HandedIn | undefined {
    return this.#draft;
  }

  /** Findings of other drafts that the last valid one lacks. */
  get withdrawn(): readonly WithdrawnFinding[] {
    return this.#submitted.missing;
  }

  get resolved(): ReviewSubmission['resolved'] {
    return [...this.#resolved.values()];
  }

  /** Allows all submissions again, after a reminder of the model. */
  reopen(): void {
    this.#submissions = 0;
  }

  /** Answers calls one after the other. */
  answer({ turnId, callId, tool, arguments: args }: DynamicToolCall): Promise<DynamicToolResult> {
    const handler = this.#handlers.get(tool);
    if (!handler) return Promise.resolve(refused('toolUnknown', `There is no tool ${tool}.`));
    const key = `${turnId}/${callId}`;
    const known = this.#answers.get(key);
    if (known) return known;
    const answer = this.#last.then(() => handler(args));
    this.#answers.set(key, answer);
    this.#last = answer.catch(() => undefined);
    return answer;
  }

  async #submit(args: Readonly<Record<string, unknown>>): Promise<DynamicToolResult> {
    if (this.#submissions >= this.#maxSubmissions) {
      this.#submitted.refuse(args['findings']);
      return refused('draftFinal', 'The draft was handed in too often. The last valid one holds; end your answer now.');
    }
    this.#submissions += 1;
    const parsed = v.safeParse(SubmittedDraft, withoutNulls(args));
    if (!parsed.success) {
      this.#submitted.refuse(args['findings']);
      return refused('draftInvalid', `${issuesText(parsed.issues)} ${this.#whatHolds()}`);
    }
    const { summary, findings } = parsed.output;
    const placed = await placeFindings(this.#assignment, findings);
    this.#submitted.take(placed);
    this.#draft = {
      summary,
      findings: placed.map(withoutError),
      warnings: [...placed.flatMap(warningOf), ...obstacleWarnings(placed)],
    };
    return this.#submissions < this.#maxSubmissions ? answerTo(placed) : final(placed);
  }

  #whatHolds(): string {
    return this.#draft
      ? 'The draft before this one holds until a valid one is handed in.'
      : 'Nothing was handed in yet: call the tool again.';
  }

  #resolve(args: Readonly<Record<string, unknown>>): DynamicToolResult {
    const parsed = v.safeParse(ResolvedFinding, withoutNulls(args));
    if (!parsed.success) return refused('resolutionInvalid', issuesText(parsed.issues));
    const { findingId, resolution, note } = parsed.output;
    const known = this.#assignment.openFindings.map((finding) => finding.findingId);
    if (!known.includes(findingId)) {
      const ids = known.length > 0 ? `Open findings are ${known.join(', ')}.` : 'There are no open findings.';
      return refused('findingUnknown', `No open finding has this id. ${ids}`);
    }
    this.#resolved.set(findingId, { findingId, resolution, note: note ?? null });
    return taken(`Noted: ${findingId} is ${resolution}.`);
  }
}

const taken = (text: string): DynamicToolResult => ({ success: true, contentItems: [{ type: 'text', text }] });
const refused = (errorCode: string, errorMessage: string): DynamicToolResult => ({
  success: false,
  errorCode,
  errorMessage,
});

function answerTo(placed: readonly PlacedFinding[]): DynamicToolResult {
  const wrong = placed.flatMap(({ error, finding }, at) =>
    error ? [`${at + 1}. "${finding.title}": ${error.code}: ${error.message}`] : [],
  );
  if (wrong.length === 0) return taken(takenText(placed));
  return refused(
    'findingsNotPlaced',
    [
      `${wrong.length} of ${placed.length} findings have no place in the diff:`,
      ...wrong,
      `Correct these and hand in the whole draft again, with all ${placed.length} findings. Leave one out only if it does not hold.`,
    ].join('\n'),
  );
}

function final(placed: readonly PlacedFinding[]): DynamicToolResult {
  const unplaced = placed.filter(({ error }) => error).length;
  const rest =
    unplaced > 0 ? ` ${unplaced} without a line of their own are listed with their file or in the summary.` : '';
  return taken(`${takenText(placed)}${rest}`);
}

function takenText(placed: readonly PlacedFinding[]): string {
  const lines = placed.map(({ finding, anchor }, at) => `${at + 1}. ${finding.path}: ${placeText(anchor)}`);
  return [
    `The draft is taken, with ${placed.length} findings. Nothing more is to be done: end your answer.`,
    ...lines,
  ].join('\n');
}

function placeText(anchor: PlacedFinding['anchor']): string {
  if (anchor.placement !== 'inline') return `listed with the ${anchor.placement}`;
  const { startLine, line, side } = anchor;
  return `${startLine === undefined ? `line ${line}` : `lines ${startLine}–${line}`}, ${side}`;
}

const withoutError = ({ error: _, ...finding }: PlacedFinding) => finding;

const warningOf = ({ error, finding, anchor }: PlacedFinding): string[] =>
  error
    ? [`"${finding.title}" has no line of its own (${error.code}) and is listed with the ${anchor.placement}.`]
    : [];

/** Names each file whose changes are published without a suggestion, with the reason. */
function obstacleWarnings(placed: readonly PlacedFinding[]): string[] {
  const texts = placed.flatMap(({ obstacle, finding }) =>
    obstacle ? [`${finding.path}: ${suggestionObstacles[obstacle]}. Its change is published as a comment only.`] : [],
  );
  return [...new Set(texts)];
}

const shownIssues = 10;

function issuesText(issues: readonly v.BaseIssue<unknown>[]): string {
  const texts = issues.slice(0, shownIssues).map((issue) => {
    const where = v.getDotPath(issue) ?? 'the arguments';
    return `${where}: ${issue.message}`;
  });
  return `${texts.join('; ')}${issues.length > shownIssues ? '; …' : ''}.`;
}

/** Drops null fields: models write null for a field that they leave out. */
function withoutNulls(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutNulls);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).flatMap(([key, each]) => (each === null ? [] : [[key, withoutNulls(each)]])),
  );
}
