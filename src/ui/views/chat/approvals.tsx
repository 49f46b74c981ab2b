import { useMemo } from 'preact/hooks';
import { visible } from '../../../lib/browser.ts';
import type { ApprovalRequest } from '../../../protocol/index.ts';
import { wordsOf } from './data/call-words.ts';
import type { Conversation } from './data/conversation.ts';
import { rowsOfChange } from './data/diff-rows.ts';
import { DiffView } from './rows/diff-view.tsx';

/**
 * The oldest question that waits: the whole command or change, what an answer covers, then the buttons. It takes no focus, and
 * no answer in the moment in which it appears.
 */
export function Approvals({ conversation }: { readonly conversation: Conversation }) {
  const waiting = conversation.approvals.value;
  const [request] = waiting;
  if (!request) return null;
  return (
    <section class="approval" aria-label="Approval" key={request.requestId}>
      <h2>
        {questionOf(request)}
        {waiting.length > 1 && <span class="quiet"> 1 of {waiting.length}</span>}
      </h2>
      <Subject conversation={conversation} request={request} />
      <Facts request={request} />
      <Buttons conversation={conversation} request={request} />
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

function Subject({
  conversation,
  request: { turnId, callId, target },
}: {
  readonly conversation: Conversation;
  readonly request: ApprovalRequest;
}) {
  // Subscribes to the list of rows: the call may come after its question.
  const row = conversation.transcript.changes.value >= 0 ? conversation.transcript.tool(turnId, callId) : undefined;
  const change = row && wordsOf(row).change;
  const rows = useMemo(() => (change ? rowsOfChange(change) : null), [change]);
  return (
    <div class="subject">
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: scrollable regions must be focusable (WCAG 2.1.1) */}
      <pre tabIndex={0}>{visible(target, { strict: true })}</pre>
      {rows && <DiffView rows={rows} />}
    </div>
  );
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

function Buttons({
  conversation,
  request,
}: {
  readonly conversation: Conversation;
  readonly request: ApprovalRequest;
}) {
  const { requestId, proposedRule } = request;
  const isAnswerable = conversation.state.matches({ linked: { live: { approval: 'answerable' } } });
  const button = (name: string, decision: Parameters<Conversation['decide']>[1], look?: string) => (
    <button
      type="button"
      class={look}
      disabled={!isAnswerable}
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
