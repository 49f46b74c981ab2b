/**
 * Rules about calls: which commands and tools run without a question, are asked about, or are refused. Shell scripts are
 * parsed; a script that cannot be judged is never allowed. Never here: asking users, running anything.
 */
export { describeRule, type RuleResult, type SourcedRule } from './decide.ts';
export { prefixOf } from './match.ts';
export {
  type CallPlace,
  RuleBook,
  type RuleBookOptions,
  readSavedRules,
  savedRulesFile,
  writeSavedRules,
} from './rule-book.ts';
export { parseScript, type Script } from './script.ts';
