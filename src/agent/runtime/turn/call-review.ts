import { randomUUID } from 'node:crypto';
import type {
  ApprovalDecision,
  ApprovalPolicy,
  ApprovalRequest,
  QuestionContent,
  ToolOutcome,
} from '../../../protocol/index.ts';
import type { ModelToolCall } from '../../model.ts';
import { askUserTool, unansweredText } from '../../question.ts';
import type { RuleBook, RuleResult } from '../../rules/index.ts';
import type { ApprovalNeed, Tool } from '../../tool.ts';
import { refusalInPlan } from './plan-mode.ts';

export type DecidedBy = 'user' | 'policy' | 'timeout';

/** Author of a decision. */
export interface Decider {
  readonly by: DecidedBy;
  /** Program through which a user decided, by the name that it introduced itself with. */
  readonly client?: string | undefined;
  /** Answers to a question, checked. */
  readonly content?: QuestionContent | undefined;
}

/** A call of the model, with the decision to run it or the reason to refuse it. */
export interface ReviewedCall {
  readonly call: ModelToolCall;
  readonly tool: Tool | undefined;
  /** Parsed arguments; invalid when `refusal` is set. */
  readonly args: unknown;
  /** Text for the model in place of a result. */
  refusal: string | undefined;
  /** The tool is unknown, or the arguments do not fit it. */
  readonly isUnusable?: boolean;
  /** The arguments were cut off at the output limit. */
  readonly isCut?: boolean;
  /** Present when an approval is needed. */
  readonly need: ApprovalNeed | undefined;
  readonly requestId: string;
  decision: ({ readonly word: ApprovalDecision } & Decider) | undefined;
  /** A rule gives the command the network. */
  readonly hasNetwork?: boolean | undefined;
  /** Result of a call that an earlier process has started: it is not run again. */
  readonly known?: KnownResult | undefined;
  /** An earlier process has started the call, without an effect: it is not judged again. */
  readonly wasStarted?: boolean;
  /** The command was allowed because it only reads. */
  readonly onlyReads?: boolean | undefined;
}

export interface KnownResult {
  readonly outcome: ToolOutcome;
  readonly text: string;
  readonly exitCode?: number;
}

export interface ReviewOptions {
  readonly workspacePath: string;
  readonly directories?: readonly string[] | undefined;
  /** Tool chains of the user's shell, for commands. */
  readonly environment?: Readonly<Record<string, string>> | undefined;
  readonly policy: ApprovalPolicy;
  /** Whether a user can answer questions. */
  readonly canAsk: boolean;
  readonly toolOf: (name: string) => Tool | undefined;
  readonly toolNames: () => readonly string[];
  readonly isGranted: (scopeKey: string) => boolean;
  /** Absent: no rules. */
  readonly rules?: Pick<RuleBook, 'judge' | 'propose' | 'isReading'> | undefined;
  /** The thread changes nothing: no rule allows it more. */
  readonly isReadOnly?: boolean;
  /** The turn only plans: calls that may change something are refused. */
  readonly isPlanning?: boolean;
  /** End of the answer that made the call. */
  readonly end?: AnswerEnd | undefined;
}

/** End of an answer, as far as it explains a broken call. */
export interface AnswerEnd {
  /** Last call of an answer that ended at the output limit. */
  readonly lastCallId: string | undefined;
  /** Output limit in tokens; undefined: unknown. */
  readonly limit: number | undefined;
}

/** Reviews one call: validates its arguments and finds whether it needs approval, is granted or is refused. */
export async function reviewCall(call: ModelToolCall, options: ReviewOptions): Promise<ReviewedCall> {
  let requestId = `approval_${randomUUID()}`;
  const refused = (
    refusal: string,
    tool?: Tool,
    flaws: Pick<ReviewedCall, 'isUnusable' | 'isCut'> = {},
  ): ReviewedCall => ({
    ...flaws,
    call,
    tool,
    args: undefined,
    refusal,
    need: undefined,
    requestId,
    decision: undefined,
  });
  const tool = options.toolOf(call.name);
  if (!tool && call.name === askUserTool)
    return { ...refused(unansweredText.policy), decision: { word: 'decline', by: 'policy' } };
  if (!tool)
    return refused(`Error: there is no tool ${call.name}. Tools: ${options.toolNames().join(', ') || 'none'}.`, tool, {
      isUnusable: true,
    });
  const json = parseJson(call.arguments);
  const parsed = json.ok
    ? tool.parse(json.value)
    : { ok: false as const, error: `the arguments of ${call.name} are not valid JSON: ${json.error}` };
  if (!parsed.ok) {
    const isCut = call.callId === options.end?.lastCallId || isUnterminated(call.arguments);
    return refused(isCut ? cutText(options.end?.limit) : `Error: ${parsed.error}`, tool, { isUnusable: true, isCut });
  }
  const { args } = parsed;
  const planned = options.isPlanning && (await refusalInPlan(tool, args, options.rules, options));
  if (planned) return refused(planned, tool);
  const verdict = await options.rules?.judge(tool, args, options);
  if (verdict?.decision === 'deny') return refused(deniedBy(verdict), tool);
  const own = await tool.approvalFor(args, options);
  const need = verdict?.decision === 'ask' ? askedBy(verdict, tool, call, own) : own;
  if (!need) return { call, tool, args, refusal: undefined, need, requestId, decision: undefined };
  if (need.question) requestId = `question_${randomUUID()}`;
  const word = wordOf(need, verdict, options);
  const refusal = word === 'decline' ? declinedByPolicy(need, verdict) : undefined;
  const proposedRule = word === undefined && !need.isAskedAlways ? await options.rules?.propose(tool, args) : undefined;
  const diff = word === undefined ? await need.preview?.() : undefined;
  return {
    ...{ call, tool, args, refusal, requestId, hasNetwork: verdict?.hasNetwork },
    // In a plan no other command passes.
    onlyReads: verdict?.onlyReads === true || options.isPlanning === true,
    need: { ...need, ...(proposedRule && { proposedRule }), ...(diff !== undefined && { diff }) },
    decision: word && { word, by: 'policy' },
  };
}

/** A rule asks about a call, also about one that needs no approval otherwise. */
function askedBy(
  verdict: RuleResult,
  tool: Tool,
  { name, arguments: args }: ModelToolCall,
  own: ApprovalNeed | undefined,
): ApprovalNeed {
  const reason = `By ${verdict.reason}.`;
  if (own) return { ...own, reason: own.reason ? `${own.reason} ${reason}` : reason };
  const kind = tool.source === 'builtin' ? 'file' : 'remoteResource';
  return {
    kind,
    operation: 'call',
    target: `${name} ${args}`,
    scopeKey: `rule:${name} ${args}`,
    covers: 'exactly this call',
    reason,
  };
}

const deniedBy = ({ reason }: RuleResult): string =>
  `Error: refused by a rule of the user: ${reason}. Do not try the same in another way; describe the refused step.`;

/** Decision by rules, policy or an earlier grant; undefined: a user must decide. */
function wordOf(
  need: ApprovalNeed,
  verdict: RuleResult | undefined,
  { policy, isGranted, isReadOnly = false, canAsk }: ReviewOptions,
): ApprovalDecision | undefined {
  if (need.question) return canAsk ? undefined : 'decline';
  // Where no user is asked, a call that needs a question does not run.
  if (verdict?.decision === 'ask' || need.isAskedAlways) return policy === 'default' ? undefined : 'decline';
  if (verdict?.decision === 'allow' && !isReadOnly) return 'accept';
  if (policy === 'autoApprove' || isGranted(need.scopeKey)) return 'accept';
  return policy === 'interrupt' ? 'decline' : undefined;
}

/** Reason of a refusal without a question, and the setting that would allow the call. */
function whyUnasked({ isAskedAlways }: ApprovalNeed, verdict: RuleResult | undefined): string {
  if (verdict?.decision === 'ask')
    return `a rule asks for it, and no automatic approval covers that: ${verdict.reason}`;
  if (isAskedAlways) return 'Api.AutoApprove and --yes do not cover it; a rule of Permissions.Rules can allow it';
  return 'Api.AutoApprove is false, or the approval policy is "interrupt"';
}

const declinedByPolicy = (need: ApprovalNeed, verdict: RuleResult | undefined): string =>
  need.question
    ? unansweredText.policy
    : `Error: rejected by policy: to ${need.operation} ${need.target} needs an approval, and operations that need one are refused here ` +
      `(${whyUnasked(need, verdict)}). Do not try it again; describe the refused step.`;

const declineReasons: Readonly<Record<DecidedBy, string>> = {
  user: 'the user declined',
  timeout: 'declined: no answer to the request for approval came in time',
  policy: 'declined: needs approval, and no user was asked (on the command line, --yes allows it)',
};

/** The result of a declined call, for the model. */
export const refusalOf = (need: ApprovalNeed, by: DecidedBy): string =>
  need.question
    ? unansweredText[by]
    : `Error: ${declineReasons[by]}: ${need.operation} ${need.target}. Do not try it again unasked.`;

/** Author of a decision in its item, its notification and its trace. */
export const authorOf = ({ by, client }: Decider) => ({ decidedBy: by, ...(client !== undefined && { client }) });

/** Approval request for clients. Undefined for a call that needs no approval. */
export function requestOf(
  reviewed: ReviewedCall,
  about: Pick<ApprovalRequest, 'threadId' | 'turnId' | 'itemId' | 'createdAt' | 'expiresAt' | 'asked'>,
): ApprovalRequest | undefined {
  const { need, call, requestId } = reviewed;
  if (!need) return undefined;
  const { diff, question } = need;
  return {
    ...{ ...about, requestId, callId: call.callId, tool: call.name, ...shownNeed(need) },
    ...(diff !== undefined && { diff }),
    ...(question && { question }),
  };
}

/** Common fields of a request for approval and its item. */
export function shownNeed(need: ApprovalNeed) {
  const { kind, operation, target, workingDirectory, scopeKey, covers, reason, proposedRule } = need;
  return {
    approvalType: kind,
    operation,
    target,
    ...(workingDirectory !== undefined && { workingDirectory }),
    scopeKey,
    covers,
    ...(reason !== undefined && { reason }),
    ...(proposedRule && { proposedRule: { tool: proposedRule.tool, prefix: [...proposedRule.prefix] } }),
  };
}

type Json = { readonly ok: true; readonly value: unknown } | { readonly ok: false; readonly error: string };

const cutText = (limit: number | undefined): string =>
  `Error: Cut off at the output limit${limit === undefined ? '' : ` of ${limit} tokens`}; write it in parts.`;

/** Whether a text is the beginning of an object: a string or a bracket in it has no end. */
function isUnterminated(text: string): boolean {
  if (!text.trimStart().startsWith('{')) return false;
  let depth = 0;
  let isInString = false;
  for (let at = 0; at < text.length; at += 1) {
    const character = text[at];
    if (isInString) {
      if (character === '\\') at += 1;
      else if (character === '"') isInString = false;
    } else if (character === '"') isInString = true;
    else if (character === '{' || character === '[') depth += 1;
    else if (character === '}' || character === ']') depth -= 1;
  }
  return isInString || depth > 0;
}

/** Arguments that a model or its server has encoded twice, encoded once; any other text unchanged. */
export function plainArguments(text: string): string {
  if (!text.trimStart().startsWith('"')) return text;
  const outer = parseJson(text);
  const inner = outer.ok && typeof outer.value === 'string' ? outer.value : '';
  const value = parseJson(inner);
  return inner !== '' && value.ok && typeof value.value === 'object' && value.value !== null ? inner : text;
}

/** Empty text means an empty object: models write nothing for a tool without parameters. */
function parseJson(text: string): Json {
  if (text.trim() === '') return { ok: true, value: {} };
  try {
    return { ok: true, value: JSON.parse(text) };
  } catch (error) {
    return { ok: false, error: (error as Error).message };
  }
}
