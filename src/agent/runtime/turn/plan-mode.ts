import type { Item } from '../../../protocol/index.ts';
import type { CallPlace, RuleBook } from '../../rules/index.ts';
import type { Tool } from '../../tool.ts';

/** Behind the prompt of a turn that plans. Not in the system prompt, which stays the same when the mode changes. */
export const planNote =
  'In this turn you only plan. Read and search as you need; every call that changes something is refused. ' +
  'Then give the plan with UpdatePlan, step by step, and explain it in a few sentences. The user decides about it.';

/** The end of a turn that plans without a plan. */
export const planMissing = 'The turn has no plan yet. Give it with UpdatePlan.';

/** Tools that change nothing themselves: their sub-agents and processes obey the mode, too. */
const harmless: ReadonlySet<string> = new Set(['UpdatePlan', 'ExecOutput', 'SpawnSubagent']);

/** @returns the refusal of a call that may change something; undefined: it only reads */
export async function refusalInPlan(
  tool: Tool,
  args: unknown,
  rules: Pick<RuleBook, 'isReading'> | undefined,
  place: CallPlace,
): Promise<string | undefined> {
  if (tool.isReadOnly || (tool.source === 'builtin' && harmless.has(tool.name))) return undefined;
  if (await rules?.isReading(tool, args, place)) return undefined;
  return `Error: not run, because this turn only plans: ${tool.name} may change something. Put it into the plan.`;
}

/** Whether a turn that plans has to continue: it has the tool, has not used it, and was not reminded of it. */
export const lacksPlan = (items: readonly Item[], tools: readonly string[]): boolean =>
  tools.includes('UpdatePlan') &&
  !items.some((item) => item.type === 'plan' || (item.type === 'systemNotice' && item.text === planMissing));
