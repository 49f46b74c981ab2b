/**
 * From a model's submission to a publishable review: the place of each finding in the diff, whether it was reported before,
 * the files worth a review, the texts that must not be published. Pure functions; called by the runs. Never here: git,
 * GitHub, a clock.
 */
export { type Anchor, type AnchorResult, anchorFinding, placeOf, withoutLineEnd } from './anchor.ts';
export { type AnchorError, anchorErrorCodes } from './anchor-errors.ts';
export type { DiffFile, DiffHunk, DiffLine, Side } from './diff-types.ts';
export { fingerprintOf } from './fingerprint.ts';
export type { AttributesFile } from './git-attributes.ts';
export {
  areOneFinding,
  areOneReport,
  type FindingIdentity,
  hasKnownLines,
  haveSameLines,
  isSameFinding,
  type KnownFinding,
  neighboursIn,
} from './identity.ts';
export { type LineRange, movedLines } from './moved-lines.ts';
export { parseDiff } from './parse-diff.ts';
export { markers, type RenderedFinding, renderComment, renderSummary, type SummaryFacts } from './render.ts';
export { type Blocked, type ScannedText, scanCode, scanOutput } from './scan-output.ts';
export { type Selection, type SelectionRules, type SkipReason, selectFiles } from './select-files.ts';
export { commentableRanges } from './sides.ts';
export {
  obstacleOfFile,
  obstacleOfLines,
  replacementFor,
  type SuggestionObstacle,
  suggestionObstacles,
} from './suggestion.ts';
