/** Answers to an approval, each with its exact scope, shared by conversation, inbox and terminal. Runs in the page, without Node and valibot. */
import type { ApprovalDecision, ApprovalRequest } from './tools.ts';

export interface OfferedAnswer {
  readonly decision: ApprovalDecision;
  /** Names the scope. May contain untrusted text. */
  readonly label: string;
  /** Scope and duration of the answer, in words. May contain untrusted text. */
  readonly means: string;
}

type Answered = Pick<ApprovalRequest, 'covers' | 'scopeKey' | 'proposedRule'> &
  Partial<Pick<ApprovalRequest, 'approvalType' | 'operation' | 'until'>>;

type Kind = Partial<Pick<ApprovalRequest, 'approvalType' | 'operation' | 'question'>>;

/** Whether a request changes a file. Edits of one round are answered together. */
export const isEdit = ({ approvalType, operation, question }: Kind): boolean =>
  approvalType === 'file' && (operation === 'edit' || operation === 'write') && question === undefined;

/** Label of the answer for one conversation. */
function sessionLabel(request: Answered, files: number): string {
  if (request.approvalType === 'shell') return 'Allow this command in this conversation';
  if (!isEdit(request)) return 'Allow in this conversation';
  return `Allow edits of ${files > 1 ? 'these files' : 'this file'} in this conversation`;
}

/** Prefix of the scope key of a command outside the sandbox. */
export const outsideScope = 'exec-outside:';

const leaving = /(?:^|[\s;&|(`/])(?:git push|npm publish|curl|wget|ssh|scp|sftp|rsync|gh|docker push)(?:\s|$)/;
const deleting = /(?:^|[\s;&|(`/])(?:rm|rmdir|unlink|shred|git clean|git reset --hard)(?:\s|$)/;

type RatedRequest = Pick<ApprovalRequest, 'approvalType' | 'operation' | 'target' | 'scopeKey'>;

const hazards: readonly (readonly [
  words: string,
  holds: (request: RatedRequest, workspace: string | undefined) => boolean,
])[] = [
  [
    'reaches the network',
    ({ approvalType, operation, target }) =>
      operation === 'fetch' || (approvalType === 'shell' && leaving.test(target)),
  ],
  ['outside the sandbox', ({ scopeKey }) => scopeKey.startsWith(outsideScope)],
  [
    'deletes',
    ({ approvalType, operation, target }) =>
      operation === 'delete' || (approvalType === 'shell' && deleting.test(target)),
  ],
  [
    'outside the workspace',
    ({ approvalType, target }, workspace) =>
      approvalType === 'file' && workspace !== undefined && target !== workspace && !isBelow(target, workspace),
  ],
];

const isBelow = (path: string, directory: string): boolean => path.startsWith(`${directory.replace(/[/\\]$/, '')}/`);

/** Dangers of a request, in words. Only a hint, because a command may hide them. @param workspace canonical path, if known */
export const hazardsOf = (request: RatedRequest, workspace?: string): readonly string[] =>
  hazards.filter(([, holds]) => holds(request, workspace)).map(([words]) => words);

/** Answers for a turn that waits for a quota. Once it waits, an answer is optional. */
const quotaAnswers = ({ operation }: Answered): OfferedAnswer[] => [
  ...(operation === 'continue'
    ? []
    : [{ decision: 'accept' as const, label: 'Wait', means: 'the turn continues at that time' }]),
  {
    decision: operation === 'continue' ? ('accept' as const) : ('now' as const),
    label: 'Continue now',
    means: 'the request is repeated at once',
  },
  { decision: 'cancel', label: 'End the turn', means: 'the turn fails' },
];

/** Answers to a request, in the order of their buttons. @param files number of files that one answer covers */
export function answersTo(request: Answered, files = 1): OfferedAnswer[] {
  const { proposedRule } = request;
  if (request.until !== undefined) return quotaAnswers(request);
  const thing = files > 1 ? `writing and editing these ${files} files` : (request.covers ?? request.scopeKey);
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
    { decision: 'accept', label: 'Allow once', means: files > 1 ? 'these calls only' : 'this call only' },
    {
      decision: 'acceptForSession',
      label: sessionLabel(request, files),
      means: `${thing}, until this conversation ends`,
    },
    ...always,
    { decision: 'decline', label: 'Decline', means: 'the agent continues without it' },
    { decision: 'cancel', label: 'Decline and stop', means: 'the turn ends' },
  ];
}
