import { randomUUID } from 'node:crypto';
import type { ApprovalDecision, ApprovalPolicy, ApprovalRequest } from '../../protocol/index.ts';
import type { ModelToolCall } from '../model.ts';
import type { ApprovalNeed, Tool } from '../tool.ts';

export type DecidedBy = 'user' | 'policy' | 'timeout';

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
  decision: { readonly word: ApprovalDecision; readonly by: DecidedBy } | undefined;
}

export interface ReviewOptions {
  readonly workspacePath: string;
  readonly policy: ApprovalPolicy;
  readonly toolOf: (name: string) => Tool | undefined;
  readonly toolNames: () => readonly string[];
  readonly isGranted: (scopeKey: string) => boolean;
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
  const need = await tool.approvalFor(args, options);
  if (!need) return { call, tool, args, refusal: undefined, need, requestId, decision: undefined };
  const word = wordOf(need, options);
  const refusal = word === 'decline' ? declinedByPolicy(need) : undefined;
  return { call, tool, args, refusal, need, requestId, decision: word && { word, by: 'policy' } };
}

/** Decision by policy or an earlier grant; undefined: a user must decide. */
function wordOf(need: ApprovalNeed, { policy, isGranted }: ReviewOptions): ApprovalDecision | undefined {
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

/** Approval request for clients. Undefined for a call that needs no approval. */
export function requestOf(
  reviewed: ReviewedCall,
  about: Pick<ApprovalRequest, 'threadId' | 'turnId' | 'itemId' | 'createdAt' | 'expiresAt'>,
): ApprovalRequest | undefined {
  const { need, call, requestId } = reviewed;
  if (!need) return undefined;
  return { ...about, requestId, callId: call.callId, tool: call.name, ...shownNeed(need) };
}

/** Common fields of a request for approval and its item. */
export function shownNeed(need: ApprovalNeed) {
  const { kind, operation, target, workingDirectory, scopeKey, covers, reason } = need;
  return {
    approvalType: kind,
    operation,
    target,
    ...(workingDirectory !== undefined && { workingDirectory }),
    scopeKey,
    covers,
    ...(reason !== undefined && { reason }),
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
