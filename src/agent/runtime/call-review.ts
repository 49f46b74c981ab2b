import { randomUUID } from 'node:crypto';
import type { ApprovalDecision, ApprovalPolicy, ApprovalRequest } from '../../protocol/index.ts';
import type { ModelToolCall } from '../model.ts';
import type { RuleBook, Verdict } from '../rules/index.ts';
import type { ApprovalNeed, Tool } from '../tool.ts';
import { refusalInPlan } from './plan-mode.ts';

export type DecidedBy = 'user' | 'policy' | 'timeout';

/** Author of a decision. */
export interface Decider {
  readonly by: DecidedBy;
  /** Program through which a user decided, by the name that it introduced itself with. */
  readonly client?: string | undefined;
}

/** A call of the model, with the decision to run it or the reason to refuse it. */
export interface ReviewedCall {
  readonly call: ModelToolCall;
  readonly tool: Tool | undefined;
  /** Parsed arguments; invalid when `refusal` is set. */
  readonly args: unknown;
  /** Text for the model in place of a result. */
  refusal: string | undefined;
  /** Present when an approval is needed. */
  readonly need: ApprovalNeed | undefined;
  readonly requestId: string;
  decision: ({ readonly word: ApprovalDecision } & Decider) | undefined;
  /** A rule gives the command the network. */
  readonly hasNetwork?: boolean | undefined;
}

export interface ReviewOptions {
  readonly workspacePath: string;
  readonly policy: ApprovalPolicy;
  readonly toolOf: (name: string) => Tool | undefined;
  readonly toolNames: () => readonly string[];
  readonly isGranted: (scopeKey: string) => boolean;
  /** Absent: no rules. */
  readonly rules?: Pick<RuleBook, 'judge' | 'propose' | 'isReading'> | undefined;
  /** The thread changes nothing: no rule allows it more. */
  readonly isReadOnly?: boolean;
  /** The turn only plans: what may change something is refused. */
  readonly isPlanning?: boolean;
}

/** Reviews one call: validates its arguments and finds whether it needs approval, is granted or is refused. */
export async function reviewCall(call: ModelToolCall, options: ReviewOptions): Promise<ReviewedCall> {
  const requestId = `approval_${randomUUID()}`;
  const refused = (refusal: string, tool?: Tool): ReviewedCall => ({
    call,
    tool,
    args: undefined,
    refusal,
    need: undefined,
    requestId,
    decision: undefined,
  });
  const tool = options.toolOf(call.name);
  if (!tool)
    return refused(`Error: there is no tool ${call.name}. Tools: ${options.toolNames().join(', ') || 'none'}.`);
  const json = parseJson(call.arguments);
  if (!json.ok) return refused(`Error: the arguments of ${call.name} are not valid JSON: ${json.error}`, tool);
  const parsed = tool.parse(json.value);
  if (!parsed.ok) return refused(`Error: ${parsed.error}`, tool);
  const { args } = parsed;
  const planned = options.isPlanning && (await refusalInPlan(tool, args, options.rules, options.workspacePath));
  if (planned) return refused(planned, tool);
  const verdict = await options.rules?.judge(tool, args, options);
  if (verdict?.decision === 'deny') return refused(deniedBy(verdict), tool);
  const own = await tool.approvalFor(args, options);
  const need = verdict?.decision === 'ask' ? askedBy(verdict, tool, call, own) : own;
  if (!need) return { call, tool, args, refusal: undefined, need, requestId, decision: undefined };
  const word = wordOf(need, verdict, options);
  const refusal = word === 'decline' ? declinedByPolicy(need) : undefined;
  const proposedRule = word === undefined && !need.isAskedAlways ? await options.rules?.propose(tool, args) : undefined;
  const diff = word === undefined ? await need.preview?.() : undefined;
  return {
    ...{ call, tool, args, refusal, requestId, hasNetwork: verdict?.hasNetwork },
    need: { ...need, ...(proposedRule && { proposedRule }), ...(diff !== undefined && { diff }) },
    decision: word && { word, by: 'policy' },
  };
}

/** A rule asks about a call, also about one that needs no approval otherwise. */
function askedBy(
  verdict: Verdict,
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

const deniedBy = ({ reason }: Verdict): string =>
  `Error: refused by a rule of the user: ${reason}. Do not try the same in another way; say what you would have done.`;

/** Decision by rules, policy or an earlier grant; undefined: a user must decide. */
function wordOf(
  need: ApprovalNeed,
  verdict: Verdict | undefined,
  { policy, isGranted, isReadOnly = false }: ReviewOptions,
): ApprovalDecision | undefined {
  // Where no user is asked, a call that needs a question does not run.
  if (verdict?.decision === 'ask' || need.isAskedAlways) return policy === 'default' ? undefined : 'decline';
  if (verdict?.decision === 'allow' && !isReadOnly) return 'accept';
  if (policy === 'autoApprove' || isGranted(need.scopeKey)) return 'accept';
  return policy === 'interrupt' ? 'decline' : undefined;
}

const declinedByPolicy = ({ operation, target }: ApprovalNeed): string =>
  `Error: rejected by policy: to ${operation} ${target} needs an approval, and operations that need one are refused here ` +
  '(Api.AutoApprove is false, or the approval policy is "interrupt"). Do not try it again; say what you would have done.';

const declineReasons: Readonly<Record<DecidedBy, string>> = {
  user: 'the user declined',
  timeout: 'declined: no answer to the request for approval came in time',
  policy: 'declined: needs approval, and no user was asked (on the command line, --yes allows it)',
};

/** The result of a declined call, for the model. */
export const refusalOf = (need: ApprovalNeed, by: DecidedBy): string =>
  `Error: ${declineReasons[by]}: ${need.operation} ${need.target}. Do not try it again unasked.`;

/** Author of a decision in its item, its notification and its trace. */
export const authorOf = ({ by, client }: Decider) => ({ decidedBy: by, ...(client !== undefined && { client }) });

/** Approval request for clients. Undefined for a call that needs no approval. */
export function requestOf(
  reviewed: ReviewedCall,
  about: Pick<ApprovalRequest, 'threadId' | 'turnId' | 'itemId' | 'createdAt' | 'expiresAt'>,
): ApprovalRequest | undefined {
  const { need, call, requestId } = reviewed;
  if (!need) return undefined;
  const { diff } = need;
  return {
    ...{ ...about, requestId, callId: call.callId, tool: call.name, ...shownNeed(need) },
    ...(diff !== undefined && { diff }),
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

/** Empty text means an empty object: models write nothing for a tool without parameters. */
function parseJson(text: string): Json {
  if (text.trim() === '') return { ok: true, value: {} };
  try {
    return { ok: true, value: JSON.parse(text) };
  } catch (error) {
    return { ok: false, error: (error as Error).message };
  }
}
