import { useMemo } from 'preact/hooks';
import { visible } from '../../../lib/browser.ts';
import type { ApprovalRequest } from '../../../protocol/index.ts';
import { ConsentText, EndMark, unseenTitle, useSeen } from '../../parts/consent.tsx';
import { wordsOf } from './data/call-words.ts';
import type { Conversation } from './data/conversation.ts';
import { rowsOfChange } from './data/diff-rows.ts';
import { DiffView } from './rows/diff-view.tsx';

/**
 * The oldest waiting question: the whole command or change, the scope of an answer, then the buttons. It takes no focus, and
 * no answer in the moment in which it appears.
 */
export function Approvals({ conversation }: { readonly conversation: Conversation }) {
  const waiting = conversation.approvals.value;
  const [request] = waiting;
  if (!request) return null;
  return <Approval key={request.requestId} conversation={conversation} request={request} waiting={waiting.length} />;
}

interface ApprovalProps {
  readonly conversation: Conversation;
  readonly request: ApprovalRequest;
}

function Approval({ conversation, request, waiting }: ApprovalProps & { readonly waiting: number }) {
  const { turnId, callId, target } = request;
  // Subscribes to the list of rows: the call may come after its question.
  const row = conversation.transcript.changes.value >= 0 ? conversation.transcript.tool(turnId, callId) : undefined;
  const change = row && wordsOf(row).change;
  const rows = useMemo(() => (change ? rowsOfChange(change) : null), [change]);
  const { isSeen, see } = useSeen(rows ? ['target', 'change'] : ['target']);
  return (
    <section class="approval" aria-label="Approval">
      <h2>
        {questionOf(request)}
        {waiting > 1 && <span class="quiet"> 1 of {waiting}</span>}
      </h2>
      <div class="question">
        <ConsentText text={target} onSeen={() => see('target')} />
        {rows && <DiffView rows={rows} end={<EndMark onSeen={() => see('change')} />} />}
        <Facts request={request} />
      </div>
      <Buttons conversation={conversation} request={request} isSeen={isSeen} />
    </section>
  );
}

const questions: Readonly<Record<ApprovalRequest['approvalType'], string>> = {
  shell: 'Run this command?',
  file: 'Change this file?',
  remoteResource: 'Open this address?',
};

function questionOf({ approvalType, operation }: ApprovalRequest): string {
  return approvalType === 'file' && operation === 'read' ? 'Read this file?' : questions[approvalType];
}

function Facts({ request }: { readonly request: ApprovalRequest }) {
  const { tool, reason, workingDirectory, covers } = request;
  return (
    <dl class="facts">
      {workingDirectory !== undefined && <Fact name="In" value={workingDirectory} />}
      {reason !== undefined && <Fact name="Reason" value={reason} />}
      <Fact name="Tool" value={tool} />
      {covers !== undefined && <Fact name="“For this session” covers" value={covers} />}
    </dl>
  );
}

function Fact({ name, value }: { readonly name: string; readonly value: string }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{visible(value)}</dd>
    </div>
  );
}

function Buttons({ conversation, request, isSeen }: ApprovalProps & { readonly isSeen: boolean }) {
  const { requestId, proposedRule } = request;
  const isAnswerable = conversation.state.matches({ linked: { live: { approval: 'answerable' } } });
  const button = (name: string, decision: Parameters<Conversation['decide']>[1], look?: string) => (
    <button
      type="button"
      class={look}
      disabled={!isAnswerable || (!isSeen && decision !== 'decline')}
      title={isSeen || decision === 'decline' ? undefined : unseenTitle}
      onClick={() => conversation.decide(requestId, decision)}
    >
      {name}
    </button>
  );
  return (
    <div class="answers">
      {button('Allow', 'accept', 'main')}
      {button('Decline', 'decline')}
      {button('Allow for this session', 'acceptForSession')}
      {proposedRule &&
        button(`Always allow “${visible(proposedRule.prefix.join(' '), { multiline: false })}”`, 'acceptAlways')}
    </div>
  );
}
