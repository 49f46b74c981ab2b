import { type ApprovalRequest, defaults, type ItemOf, type PlanStep } from '../protocol/index.ts';

/** Activity beside the text of an answer: field `x_agent` of a chunk. Events are open: readers tolerate unknown ones. */
export interface Activity {
  readonly event:
    | 'tool.started'
    | 'tool.completed'
    | 'tool.failed'
    | 'tool.declined'
    | 'tool.cancelled'
    | 'approval.requested'
    | 'approval.resolved'
    | 'plan'
    | 'notice';
  readonly callId?: string;
  readonly tool?: string;
  readonly arguments?: string;
  readonly durationMs?: number;
  readonly outputPreview?: string;
  readonly approvalId?: string;
  readonly approvalType?: string;
  readonly operation?: string;
  readonly target?: string;
  readonly expiresAt?: string;
  readonly decision?: string;
  readonly decidedBy?: string;
  readonly kind?: string;
  readonly message?: string;
  readonly steps?: readonly PlanStep[];
}

/** One tool call of a finished answer: `x_agent.steps[]`. */
export interface Step {
  readonly callId: string;
  readonly tool: string;
  readonly arguments: string;
  readonly outcome: string;
  readonly durationMs?: number;
  readonly outputPreview?: string;
}

/** A surrogate pair is never cut in two. */
function preview(text: string): string {
  return text.length <= defaults.chat.previewChars
    ? text
    : `${text.slice(0, defaults.chat.previewChars).toWellFormed()}…`;
}

export function toolStarted({ callId, tool, arguments: given }: ItemOf<'toolCall'>): Activity {
  return { event: 'tool.started', callId, tool, arguments: preview(given) };
}

export function toolEnded({ callId, tool, outcome, text, durationMs }: ItemOf<'toolResult'>): Activity {
  return {
    // Clients of this stream know four ends.
    event: outcome === 'unknown' ? 'tool.failed' : `tool.${outcome}`,
    callId,
    tool,
    ...(durationMs !== undefined && { durationMs }),
    outputPreview: preview(text),
  };
}

export function approvalRequested(request: ApprovalRequest): Activity {
  const { requestId, callId, tool, approvalType, operation, target, expiresAt } = request;
  return {
    event: 'approval.requested',
    approvalId: requestId,
    callId,
    tool,
    approvalType,
    operation,
    target: preview(target),
    expiresAt,
  };
}

export function approvalResolved(approvalId: string, decision: string, decidedBy: string): Activity {
  return { event: 'approval.resolved', approvalId, decision, decidedBy };
}

export const planned = ({ callId, steps }: ItemOf<'plan'>): Activity => ({ event: 'plan', callId, steps });

export const notice = ({ kind, text }: ItemOf<'systemNotice'>): Activity => ({ event: 'notice', kind, message: text });

/** One line for people, in the thinking of the answer; undefined for events without one. */
export function lineOf(activity: Activity): string | undefined {
  const { event, tool, durationMs, message, operation, target } = activity;
  const took = durationMs === undefined ? '' : ` (${durationMs} ms)`;
  switch (event) {
    case 'tool.started':
      return `[${tool}] ${activity.arguments ?? ''}\n`;
    case 'tool.completed':
      return `[${tool}] done${took}\n`;
    case 'tool.failed':
      return `[${tool}] failed${took}: ${firstLine(activity.outputPreview)}\n`;
    case 'tool.declined':
      return `[${tool}] not allowed\n`;
    case 'tool.cancelled':
      return `[${tool}] cancelled\n`;
    case 'approval.requested':
      return `[approval needed] ${operation} ${target}\n`;
    case 'plan':
      return `[plan] ${activity.steps?.find(({ status }) => status === 'in_progress')?.step ?? 'changed'}\n`;
    case 'approval.resolved':
      return undefined;
    case 'notice':
      return `[${message}]\n`;
  }
}

const firstLine = (text = ''): string => text.split('\n', 1)[0] ?? '';

/** Tool calls with their results, in the order of the calls. */
export function stepsOf(activities: readonly Activity[]): Step[] {
  const steps = new Map<string, Step>();
  for (const { event, callId, tool, arguments: given = '', durationMs, outputPreview } of activities) {
    if (callId === undefined || tool === undefined) continue;
    const before = steps.get(callId);
    if (event === 'tool.started') steps.set(callId, { callId, tool, arguments: given, outcome: 'running' });
    else if (before && event.startsWith('tool.')) {
      steps.set(callId, {
        ...before,
        outcome: event.slice('tool.'.length),
        ...(durationMs !== undefined && { durationMs }),
        ...(outputPreview !== undefined && { outputPreview }),
      });
    }
  }
  return [...steps.values()];
}
