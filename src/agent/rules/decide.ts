import type { PermissionRule, RuleDecision } from '../../config/index.ts';
import {
  forbiddenReadings,
  isAboutCommand,
  isAboutTool,
  matchesPattern,
  mayReadScript,
  prefixOf,
  scriptsIn,
} from './match.ts';
import { isReadOnly, type ReadOnlyPlace } from './read-only.ts';
import { parseScript, type Script } from './script.ts';

/** A rule with the place that it comes from. */
export interface SourcedRule extends PermissionRule {
  readonly source: 'config' | 'saved';
}

/** Decision of the rules about a call. Undefined: no rule is about it, the tool's own needs hold. */
export interface RuleResult {
  readonly decision: RuleDecision | undefined;
  /** The rule that decided; absent: the built-in list of reading commands, or none. */
  readonly rule?: SourcedRule | undefined;
  readonly reason: string;
  /** Every rule that allows a part of the command gives it the network. */
  readonly hasNetwork?: boolean;
  /** Every part of the command only reads: it runs without the variables and directories of the workspace. */
  readonly onlyReads?: boolean;
}

const silent: RuleResult = { decision: undefined, reason: 'no rule is about it' };

/** Strictest first. */
const strictness: readonly RuleDecision[] = ['deny', 'ask', 'allow'];

/**
 * Decides about a command. Every part of a compound command is decided alone, and the strictest holds; a script that cannot be judged
 * is never allowed. Denying rules also apply to nested commands, and to commands that shells and wrappers run.
 */
export async function decideCommand(
  text: string,
  rules: readonly SourcedRule[],
  place: ReadOnlyPlace,
): Promise<RuleResult> {
  const own = rules.filter((rule) => isAboutTool(rule, 'Exec'));
  const script = await parseScript(text);
  for (const decision of ['deny', 'ask'] as const) {
    const strict = own.filter((rule) => rule.Decision === decision);
    const rule = strict.length === 0 ? undefined : await forbidding(strict, text, script);
    if (rule) return { decision, rule, reason: reasonOf(rule) };
  }
  if (script.kind === 'opaque') return { decision: undefined, reason: 'it is not a list of plain commands' };
  if (await isReadOnly(script.commands, place)) {
    return { decision: 'allow', reason: 'it only reads in the workspace', onlyReads: true };
  }
  const allowing = own.filter(({ Decision }) => Decision === 'allow');
  let last: SourcedRule | undefined;
  let hasNetwork = true;
  for (const words of script.commands) {
    const rule = allowing.find((each) => isAboutCommand(each, words) && isPlainProgram(words));
    if (!rule && !(await isReadOnly([words], place))) return silent;
    last = rule ?? last;
    hasNetwork &&= rule === undefined || rule.Network === true;
  }
  return last ? { decision: 'allow', rule: last, reason: reasonOf(last), hasNetwork } : silent;
}

/** A program whose name has a blank in it is not the program that a pattern names. */
const isPlainProgram = ([program = '']: readonly string[]): boolean => !/\s/.test(program);

/** First of the rules that a command, or anything it may run, falls under. */
async function forbidding(
  rules: readonly SourcedRule[],
  text: string,
  script: Script,
  depth = 0,
): Promise<SourcedRule | undefined> {
  const readings = script.commands.flatMap(forbiddenReadings);
  const found = rules.find((rule) => readings.some((words) => isAboutCommand(rule, words)));
  if (found) return found;
  const isHidden = script.isBroken || readings.some(mayReadScript);
  const byText = isHidden ? rules.find((rule) => occursIn(rule, text)) : undefined;
  if (byText || depth >= maxNesting) return byText;
  for (const inner of script.commands.flatMap(scriptsIn)) {
    const rule = await forbidding(rules, inner, await parseScript(inner), depth + 1);
    if (rule) return rule;
  }
  return undefined;
}

/** Scripts in the words of scripts that are read. */
const maxNesting = 2;

/** Whether a script whose commands are not all known may run a command that a rule names. */
function occursIn(rule: SourcedRule, text: string): boolean {
  const words = prefixOf(rule);
  const spaced = ` ${text.replace(/["'\\]/g, '').replace(/[\s;&|(){}<>]+/g, ' ')} `;
  if (words) return spaced.includes(` ${words.join(' ')} `);
  return rule.Pattern === undefined || matchesPattern(`*${rule.Pattern}*`, spaced);
}

/**
 * Decides about a call of any other tool.
 *
 * @param target path in the workspace or address that the call is about; undefined: a rule with a pattern does not hold
 */
export function decideCall(tool: string, target: string | undefined, rules: readonly SourcedRule[]): RuleResult {
  const own = rules.filter((rule) => rule.Prefix === undefined && isAboutTool(rule, tool));
  const matching = own.filter(
    ({ Pattern }) => Pattern === undefined || (target !== undefined && matchesPattern(Pattern, target)),
  );
  for (const decision of strictness) {
    const rule = matching.find(({ Decision }) => Decision === decision);
    if (rule) return { decision, rule, reason: reasonOf(rule) };
  }
  return silent;
}

/** A rule in words. */
export function describeRule(rule: PermissionRule): string {
  const prefix = prefixOf(rule);
  const what = prefix ? ` ${prefix.join(' ')} …` : rule.Pattern === undefined ? '' : ` ${rule.Pattern}`;
  return `${rule.Decision} ${rule.Tool}${what}${rule.Network ? ', with the network' : ''}`;
}

const reasonOf = (rule: SourcedRule): string => `the rule “${describeRule(rule)}”`;
