/** Answers to an approval, each with its exact permission: the same in a conversation, the inbox and a terminal. Needs no Node and no valibot: the page uses it. */
import type { ApprovalDecision, ApprovalRequest } from './tools.ts';

export interface OfferedAnswer {
  readonly decision: ApprovalDecision;
  /** Names the scope. May hold other people's text. */
  readonly label: string;
  /** Scope and duration of the answer, in words. May hold other people's text. */
  readonly means: string;
}

type Answered = Pick<ApprovalRequest, 'covers' | 'scopeKey' | 'proposedRule'> &
  Partial<Pick<ApprovalRequest, 'approvalType' | 'operation' | 'until'>>;

/** Label of the answer for one conversation. */
function sessionLabel({ approvalType, operation }: Answered): string {
  if (approvalType === 'shell') return 'Allow this command in this conversation';
  const isEdit = approvalType === 'file' && (operation === 'edit' || operation === 'write');
  return isEdit ? 'Allow edits of this file in this conversation' : 'Allow in this conversation';
}

/** Answers about a turn that waits for a quota. While it waits already, it needs none. */
const quotaAnswers = ({ operation }: Answered): OfferedAnswer[] => [
  ...(operation === 'continue'
    ? []
    : [{ decision: 'accept' as const, label: 'Wait', means: 'the turn continues at that time' }]),
  {
    decision: operation === 'continue' ? ('accept' as const) : ('now' as const),
    label: 'Continue now',
    means: 'the request is repeated at once',
  },
  { decision: 'cancel', label: 'End the turn', means: 'it ends with the failure' },
];

/** The answers to a request, in the order of their buttons. */
export function answersTo(request: Answered): OfferedAnswer[] {
  const { proposedRule } = request;
  if (request.until !== undefined) return quotaAnswers(request);
  const thing = request.covers ?? request.scopeKey;
  const always: OfferedAnswer[] = proposedRule
    ? [
        {
          decision: 'acceptAlways',
          label: `Always: ${proposedRule.prefix.join(' ')} …`,
          means: `${proposedRule.tool} commands that begin with “${proposedRule.prefix.join(' ')}”, in every conversation of this workspace`,
        },
      ]
    : [];
  return [
    { decision: 'accept', label: 'Allow once', means: 'this call only' },
    {
      decision: 'acceptForSession',
      label: sessionLabel(request),
      means: `${thing}, until this conversation ends`,
    },
    ...always,
    { decision: 'decline', label: 'Decline', means: 'the agent continues without it' },
    { decision: 'cancel', label: 'Decline and stop', means: 'the turn ends' },
  ];
}
