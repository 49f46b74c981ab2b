import * as v from 'valibot';
import { findingSeverities } from '../../protocol/index.ts';
import type { AttributesFile } from '../anchors/index.ts';
import type { PreparedReview } from '../git/index.ts';
import type { BackendSettings } from '../settings/index.ts';
import { runLimits } from './limits.ts';

/** Review rules of a repository, read from the base commit, so that a pull request cannot change its own rules. */
export const rulesFile = '.oratorio-review.json';
/** Files for agents and reviewers, used as instructions too. */
const guides = ['REVIEW.md', 'AGENTS.md'] as const;
const attributesFile = '.gitattributes';
/** All files read from the base commit. */
export const baseRuleFiles = [rulesFile, attributesFile, ...guides] as const;

const names = v.pipe(v.array(v.pipe(v.string(), v.trim(), v.nonEmpty(), v.maxLength(200))), v.maxLength(200));
export const RepositoryRules = v.strictObject({
  /** Read by editors only. */
  $schema: v.optional(v.string()),
  instructions: v.optional(v.pipe(v.string(), v.maxLength(runLimits.instructions))),
  /** Added to those of the settings, like the next three. */
  ignorePaths: v.optional(names, []),
  ignoreTitles: v.optional(names, []),
  ignoreLabels: v.optional(names, []),
  ignoreAuthors: v.optional(names, []),
  /** Replaces those of the settings. */
  baseBranches: v.optional(names),
  minSeverity: v.optional(v.picklist(findingSeverities)),
  /** Cannot exceed the value of the settings. */
  maxFindings: v.optional(v.pipe(v.number(), v.integer(), v.minValue(1))),
});
export type RepositoryRules = v.InferOutput<typeof RepositoryRules>;

export interface BaseRules {
  /** Effective settings for this repository. */
  readonly review: BackendSettings['Review'];
  readonly instructions: readonly string[];
  /** Attributes that mark generated and vendored files; only the file at the root is read. */
  readonly gitAttributes: readonly AttributesFile[];
  readonly warnings: readonly string[];
}

type BaseFiles = Pick<PreparedReview, 'baseFiles'>;
interface Read<T> {
  readonly value: T;
  readonly warnings: readonly string[];
}

/** Reads a file of the base commit. A file that is too large does not stop the review: it is ignored with a warning in the draft. */
async function textOf(files: BaseFiles, path: string): Promise<Read<string | null>> {
  try {
    return { value: await files.baseFiles(path), warnings: [] };
  } catch (error) {
    if ((error as { code?: unknown }).code !== 'fileTooLarge') throw error;
    return { value: null, warnings: [`Ignored ${path} of the base branch: the file is too large.`] };
  }
}

const noRules: RepositoryRules = v.parse(RepositoryRules, {});

async function rulesOf(files: BaseFiles): Promise<Read<RepositoryRules>> {
  const { value, warnings } = await textOf(files, rulesFile);
  if (value === null) return { value: noRules, warnings };
  const ignored = (why: string) => ({
    value: noRules,
    warnings: [`Ignored ${rulesFile} of the base branch: ${why}`],
  });
  let parsed: unknown;
  try {
    parsed = JSON.parse(value.replace(/^\uFEFF/, ''));
  } catch {
    return ignored('invalid JSON.');
  }
  const result = v.safeParse(RepositoryRules, parsed);
  if (result.success) return { value: result.output, warnings: [] };
  const [issue] = result.issues;
  return ignored(`invalid value of ${v.getDotPath(issue) ?? 'the root'}.`);
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

/** Merges the settings with the rules of the base commit. @throws GitError when git fails */
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
