import { useLayoutEffect, useMemo, useRef } from 'preact/hooks';
import { visible } from '../../../lib/browser.ts';
import type { ApprovalDecision, ApprovalRequest, QuestionAnswer } from '../../../protocol/index.ts';
import { Answers } from '../../parts/answers.tsx';
import { ConsentText, useSeen } from '../../parts/consent.tsx';
import { QuestionForm } from '../../parts/question-form.tsx';
import { wordsOf } from './data/call-words.ts';
import type { Conversation } from './data/conversation.ts';
import { askedChange, partsToSee } from './data/diff-rows.ts';
import { ConsentChange } from './rows/consent-change.tsx';

/**
 * The oldest waiting question: the whole command or change, the scope of an answer, then the buttons. It takes no focus, and
 * no answer in the moment in which it appears.
 */
export function Approvals({ conversation }: { readonly conversation: Conversation }) {
  const waiting = conversation.approvals.value;
  const [request] = waiting;
  const panel = useRef<HTMLElement>(null);
  const isByKey = useRef(false);
  useLayoutEffect(() => {
    // The focus of a removed button moves to the next question, or to the box.
    if (isByKey.current) (panel.current ?? document.querySelector<HTMLElement>('.composer textarea'))?.focus();
    isByKey.current = false;
  }, [request?.requestId]);
  if (!request) return null;
  const answer = (decision: ApprovalDecision, answered?: QuestionAnswer) => {
    isByKey.current = document.activeElement?.matches(':focus-visible') ?? false;
    conversation.decide(request.requestId, decision, answered);
  };
  return (
    <section ref={panel} class="approval" aria-label={request.question ? 'Question' : 'Approval'} tabIndex={-1}>
      <Approval
        key={request.requestId}
        conversation={conversation}
        request={request}
        waiting={waiting.length}
        onAnswer={answer}
      />
    </section>
  );
}

interface ApprovalProps {
  readonly conversation: Conversation;
  readonly request: ApprovalRequest;
  /** Number of waiting questions. */
  readonly waiting: number;
  readonly onAnswer: (decision: ApprovalDecision, answered?: QuestionAnswer) => void;
}

function Approval({ conversation, request, waiting, onAnswer }: ApprovalProps) {
  const { turnId, callId, target } = request;
  // Subscribes to the list of rows: the call may come after its question.
  const row = conversation.transcript.changes.value >= 0 ? conversation.transcript.tool(turnId, callId) : undefined;
  const change = row && wordsOf(row).change;
  const asked = useMemo(() => askedChange(change ?? null, request.diff), [change, request.diff]);
  const { isSeen, see } = useSeen(partsToSee(asked));
  const isOff = !conversation.state.matches({ linked: { live: { approval: 'answerable' } } });
  const { question } = request;
  if (question)
    return (
      <>
        <h2>
          Question
          {waiting > 1 && <span class="quiet"> 1 of {waiting}</span>}
        </h2>
        <QuestionForm question={question} isOff={isOff} onAnswer={(answered) => onAnswer(answered.action, answered)} />
      </>
    );
  return (
    <>
      <h2>
        {questionOf(request)}
        {waiting > 1 && <span class="quiet"> 1 of {waiting}</span>}
      </h2>
      <div class="question">
        <ConsentText text={target} onSeen={() => see('target')} />
        <ConsentChange change={asked} onSeen={() => see('change')} />
        <Facts request={request} />
      </div>
      <Answers request={request} isOff={isOff} isSeen={isSeen} onAnswer={onAnswer} />
    </>
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
      {covers !== undefined && <Fact name="In this conversation" value={covers} />}
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
