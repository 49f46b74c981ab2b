/** Answers to an approval, each with its exact permission. Needs no Node and no valibot: the page uses it. */
import type { ApprovalDecision, ApprovalRequest } from './tools.ts';

export interface OfferedAnswer {
  readonly decision: ApprovalDecision;
  readonly label: string;
  /** Scope and duration of the answer, in words. May hold other people's text. */
  readonly means: string;
}

/** The answers to a request, in the order of their buttons. */
export function answersTo(request: Pick<ApprovalRequest, 'covers' | 'scopeKey' | 'proposedRule'>): OfferedAnswer[] {
  const { proposedRule } = request;
  const thing = request.covers ?? request.scopeKey;
  const always: OfferedAnswer[] = proposedRule
    ? [
        {
          decision: 'acceptAlways',
          label: 'Always allow',
          means: `${proposedRule.tool} commands that begin with “${proposedRule.prefix.join(' ')}”, in every conversation of this workspace`,
        },
      ]
    : [];
  return [
    { decision: 'accept', label: 'Allow once', means: 'this call only' },
    {
      decision: 'acceptForSession',
      label: 'Allow in this conversation',
      means: `${thing}, until this conversation ends`,
    },
    ...always,
    { decision: 'decline', label: 'Decline', means: 'the agent continues without it' },
    { decision: 'cancel', label: 'Decline and stop', means: 'the turn ends' },
  ];
}
