import * as v from 'valibot';

export const ruleDecisions = ['allow', 'ask', 'deny'] as const;
export type RuleDecision = (typeof ruleDecisions)[number];

const longestText = 500;
const words = `a text of 1 to ${longestText} characters`;
const Text = v.pipe(v.string(words), v.trim(), v.nonEmpty(words), v.maxLength(longestText, words));
const prefixWords = 'the first words of a command, as a text or a list';

/** A rule about the calls of a tool. */
export const PermissionRule = v.pipe(
  v.object({
    Tool: v.pipe(Text, v.description('Tool, matched without case; mcp__<server>__* stands for all tools of a server.')),
    Prefix: v.pipe(
      v.optional(
        v.union(
          [Text, v.pipe(v.array(Text, prefixWords), v.nonEmpty(prefixWords), v.maxLength(20, prefixWords))],
          prefixWords,
        ),
      ),
      v.description('First words of a command of Exec, e.g. "npm run"; compared word by word.'),
    ),
    Pattern: v.pipe(
      v.optional(Text),
      v.description('Pattern with * and ?: of the words of a command, of a path in the workspace, of an address.'),
    ),
    Network: v.pipe(
      v.optional(v.boolean('true or false')),
      v.description('A command of Exec that this rule allows has the network in the sandbox.'),
    ),
    Decision: v.pipe(
      v.picklist(ruleDecisions, '"allow", "ask" or "deny"'),
      v.description('The strictest of all rules that match holds: deny, then ask, then allow.'),
    ),
  }),
  v.check(
    ({ Tool, Network, Decision }) => !Network || (Decision === 'allow' && Tool.toLowerCase() === 'exec'),
    'a rule with Network only where it allows commands of Exec',
  ),
  v.check(
    ({ Prefix, Pattern }) => Prefix === undefined || Pattern === undefined,
    'a rule with Prefix or Pattern, not both',
  ),
  v.check(
    ({ Tool, Prefix, Pattern, Decision }) =>
      Decision !== 'allow' || Tool.toLowerCase() !== 'exec' || Prefix !== undefined || Pattern !== undefined,
    'a rule with Prefix or Pattern, because it allows commands',
  ),
);
export type PermissionRule = v.InferOutput<typeof PermissionRule>;

/** `Permissions.Rules`. */
export const PermissionRules = v.pipe(
  v.optional(v.pipe(v.array(PermissionRule, 'a list of rules'), v.maxLength(500, 'at most 500 rules')), []),
  v.description('Rules that allow, ask about or deny calls: {Tool, Prefix or Pattern, Decision}.'),
);
