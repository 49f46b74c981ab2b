import * as v from 'valibot';
import { findingSeverities } from '../../protocol/index.ts';
import type { AttributesFile } from '../anchors/index.ts';
import type { PreparedReview } from '../git/index.ts';
import type { BackendSettings } from '../settings/index.ts';
import { runLimits } from './limits.ts';

/** What a repository says of its own reviews. Read from the base commit: a pull request does not choose how it is judged. */
export const rulesFile = '.oratorio-review.json';
/** Written for agents and reviewers; instructions too. */
const guides = ['REVIEW.md', 'AGENTS.md'] as const;
const attributesFile = '.gitattributes';
/** All that is read of the base commit. */
export const baseRuleFiles = [rulesFile, attributesFile, ...guides] as const;

const names = v.pipe(v.array(v.pipe(v.string(), v.trim(), v.nonEmpty(), v.maxLength(200))), v.maxLength(200));
export const RepositoryRules = v.strictObject({
  /** For editors. */
  $schema: v.optional(v.string()),
  instructions: v.optional(v.pipe(v.string(), v.maxLength(runLimits.instructions))),
  /** Besides those of the settings. */
  ignorePaths: v.optional(names, []),
  ignoreTitles: v.optional(names, []),
  ignoreLabels: v.optional(names, []),
  ignoreAuthors: v.optional(names, []),
  /** In place of those of the settings. */
  baseBranches: v.optional(names),
  minSeverity: v.optional(v.picklist(findingSeverities)),
  /** At most as many as the settings allow. */
  maxFindings: v.optional(v.pipe(v.number(), v.integer(), v.minValue(1))),
});
export type RepositoryRules = v.InferOutput<typeof RepositoryRules>;

export interface BaseRules {
  /** The settings as they hold for this repository. */
  readonly review: BackendSettings['Review'];
  readonly instructions: readonly string[];
  /** Which files are generated or vendored. Of the root: those further down are not looked for. */
  readonly gitAttributes: readonly AttributesFile[];
  readonly warnings: readonly string[];
}

type BaseFiles = Pick<PreparedReview, 'baseFiles'>;
interface Read<T> {
  readonly value: T;
  readonly warnings: readonly string[];
}

/** A file of the base commit that is wrong does not stop a review: it is left out, and the draft says so. */
async function textOf(files: BaseFiles, path: string): Promise<Read<string | null>> {
  try {
    return { value: await files.baseFiles(path), warnings: [] };
  } catch (error) {
    if ((error as { code?: unknown }).code !== 'fileTooLarge') throw error;
    return { value: null, warnings: [`${path} of the base branch is too large and was not read.`] };
  }
}

const noRules: RepositoryRules = v.parse(RepositoryRules, {});

async function rulesOf(files: BaseFiles): Promise<Read<RepositoryRules>> {
  const { value, warnings } = await textOf(files, rulesFile);
  if (value === null) return { value: noRules, warnings };
  const refused = (why: string) => ({
    value: noRules,
    warnings: [`${rulesFile} of the base branch was not followed: ${why}`],
  });
  let parsed: unknown;
  try {
    parsed = JSON.parse(value.replace(/^\uFEFF/, ''));
  } catch {
    return refused('it is no JSON.');
  }
  const result = v.safeParse(RepositoryRules, parsed);
  if (result.success) return { value: result.output, warnings: [] };
  const [issue] = result.issues;
  return refused(`${v.getDotPath(issue) ?? 'the whole'} is not what it may be.`);
}

const merged = (review: BackendSettings['Review'], rules: RepositoryRules): BackendSettings['Review'] => ({
  ...review,
  IgnorePaths: [...review.IgnorePaths, ...rules.ignorePaths],
  IgnoreTitles: [...review.IgnoreTitles, ...rules.ignoreTitles],
  IgnoreLabels: [...review.IgnoreLabels, ...rules.ignoreLabels],
  IgnoreAuthors: [...review.IgnoreAuthors, ...rules.ignoreAuthors],
  BaseBranches: rules.baseBranches ?? review.BaseBranches,
  MinSeverity: rules.minSeverity ?? review.MinSeverity,
  MaxFindings: Math.min(review.MaxFindings, rules.maxFindings ?? review.MaxFindings),
});

/** The settings and what the base commit adds to them. @throws GitError when git fails */
export async function readBaseRules(files: BaseFiles, review: BackendSettings['Review']): Promise<BaseRules> {
  const [rules, attributes, ...texts] = await Promise.all([
    rulesOf(files),
    textOf(files, attributesFile),
    ...guides.map((path) => textOf(files, path)),
  ]);
  const instructions = [review.Instructions, rules.value.instructions ?? '', ...texts.map(({ value }) => value ?? '')]
    .map((text) => text.trim().slice(0, runLimits.instructions))
    .filter((text) => text !== '');
  return {
    review: merged(review, rules.value),
    instructions,
    gitAttributes: attributes.value === null ? [] : [{ directory: '', text: attributes.value }],
    warnings: [rules, attributes, ...texts].flatMap(({ warnings }) => warnings),
  };
}
