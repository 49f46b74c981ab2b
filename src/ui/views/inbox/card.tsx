/** Requests that one answer decides, as one card: in the inbox, in *Now*, in their conversation, and above every other view. */
import type { ComponentChildren } from 'preact';
import { useEffect, useMemo, useState } from 'preact/hooks';
import { visible } from '../../../lib/browser.ts';
import { answersTo, hazardsOf } from '../../../protocol/browser.ts';
import type { ApprovalDecision, ApprovalRequest, QuestionAnswer } from '../../../protocol/index.ts';
import { ConsentText, unseenTitle, useSeen } from '../../parts/consent.tsx';
import { QuestionForm } from '../../parts/question-form.tsx';
import { bothTimes, distance } from '../../parts/time.ts';
import type { FileChange } from '../chat/data/call-words.ts';
import { askedChange, partsToSee } from '../chat/data/diff-rows.ts';
import { ConsentChange } from '../chat/rows/consent-change.tsx';
import type { Group } from './rounds.ts';
import './card.css';

/** Time in which a new request ignores clicks and keys, because they may be meant for something else. */
const settleMs = 500;

const line = (text: string) => visible(text, { multiline: false });

export interface RequestCardProps {
  /** Edits of one round, or one request. */
  readonly requests: Group<ApprovalRequest>;
  /** Name of the workspace that asks. */
  readonly name: string;
  /** Canonical path of the workspace. */
  readonly path: string | undefined;
  /** Address of the conversation; absent: the card stands in it. */
  readonly actionUrl?: string;
  /** Milliseconds since the epoch. */
  readonly now: number;
  /** Present: it was decided. */
  readonly outcome: string | null;
  /** No answer can be sent now. */
  readonly isOff: boolean;
  /** Whole change that a call requests, where it is known. */
  readonly changeOf?: (request: ApprovalRequest) => FileChange | null;
  readonly onAnswer: (decision: ApprovalDecision, answer?: QuestionAnswer) => void;
  /** Further words and buttons at the foot. */
  readonly children?: ComponentChildren;
}

/** A request: its author, the whole operation, its dangers, the time left, and an answer for each scope. */
export function RequestCard(props: RequestCardProps) {
  const { requests, name, path, actionUrl, now, outcome, changeOf, children } = props;
  const [first] = requests;
  const { question, asked, expiresAt } = first;
  const shown = requests.map((request) => {
    const change = changeOf?.(request) ?? null;
    // Holds the content: a change that arrives after its question has not been seen.
    return { request, change, key: JSON.stringify([request.requestId, change ?? request.diff]) };
  });
  const keys = shown.map(({ key }) => key);
  const { isSeen, see } = useSeen(keys);
  const until = Date.parse(expiresAt);
  const files = requests.length;
  return (
    <article class="request-card" aria-label={`${question ? 'Question' : 'Approval'}: ${line(name)}`}>
      <header>
        <b title={path}>{line(name)}</b>{' '}
        {files > 1 ? `wants to edit ${files} files ` : `wants to ${line(first.operation)} `}
        <span class="quiet">({line(first.tool)})</span>
        {actionUrl !== undefined && asked !== undefined && asked !== '' && (
          <span class="quiet asked"> · you asked: “{line(asked)}”</span>
        )}
      </header>
      <div class="question">
        {shown.map(({ request, change, key }, index) => (
          <Operation
            key={key}
            request={request}
            change={change}
            number={files > 1 ? `edit ${index + 1} of ${files}` : null}
            workspace={path}
            onSeen={() => see(key)}
          />
        ))}
        {question === undefined && <Scopes request={first} files={files} />}
      </div>
      {outcome === null ? (
        <Answers
          key={keys.join()}
          {...props}
          isSeen={isSeen}
          hasHazard={requests.some((each) => hazardsOf(each, path).length > 0)}
        />
      ) : (
        <p class="outcome" role="status">
          {outcome}
        </p>
      )}
      <footer>
        {actionUrl !== undefined && <a href={actionUrl}>Open the conversation</a>}
        {outcome === null && (
          <span class="quiet" role="timer" title={bothTimes(until)}>
            Declined {distance(until, now)} without an answer
          </span>
        )}
        {children}
      </footer>
    </article>
  );
}

interface OperationProps {
  readonly request: ApprovalRequest;
  readonly change: FileChange | null;
  /** `edit 1 of 2`; null: the card has one request. */
  readonly number: string | null;
  readonly workspace: string | undefined;
  /** Reports that the end was in view. */
  readonly onSeen: () => void;
}

/** The whole command or change of a request. */
function Operation({ request, change, number, workspace, onSeen }: OperationProps) {
  const { diff, question, target, workingDirectory, reason } = request;
  const asked = useMemo(() => askedChange(change, diff), [change, diff]);
  const { isSeen, see } = useSeen(partsToSee(asked));
  useEffect(() => {
    if (isSeen) onSeen();
  }, [isSeen]);
  if (question) return null;
  return (
    <>
      {number !== null && <p class="quiet">{number}</p>}
      <ConsentText text={target} onSeen={() => see('target')} />
      <ConsentChange change={asked} onSeen={() => see('change')} />
      <p class="hazards">
        {hazardsOf(request, workspace).map((words) => (
          <span key={words} class="chip warn">
            {words}
          </span>
        ))}
      </p>
      <dl>
        {workingDirectory !== undefined && <Fact name="In" text={workingDirectory} />}
        {reason !== undefined && <Fact name="Reason" text={reason} />}
      </dl>
    </>
  );
}

/** Scope of each answer that holds for longer than one call. */
function Scopes({ request, files }: { readonly request: ApprovalRequest; readonly files: number }) {
  return (
    <dl>
      {answersTo(request, files)
        .filter(({ decision }) => decision === 'acceptForSession' || decision === 'acceptAlways')
        .map(({ decision, means }) => (
          <Fact key={decision} name={decision === 'acceptAlways' ? 'Always' : 'In this conversation'} text={means} />
        ))}
    </dl>
  );
}

function Fact({ name, text }: { readonly name: string; readonly text: string }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{visible(text)}</dd>
    </div>
  );
}

interface AnswersProps extends Pick<RequestCardProps, 'requests' | 'isOff' | 'onAnswer'> {
  /** Whether the end of each request was in view; before, only answers that decline are possible. */
  readonly isSeen: boolean;
  /** No button stands out. */
  readonly hasHazard: boolean;
}

/** Buttons that answer once the card has stood for a moment, each with its scope. */
function Answers({ requests, onAnswer, isSeen, hasHazard, ...props }: AnswersProps) {
  const [hasSettled, setHasSettled] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setHasSettled(true), settleMs);
    return () => clearTimeout(timer);
  }, []);
  const isOff = props.isOff || !hasSettled;
  const [first] = requests;
  if (first.question)
    return (
      <QuestionForm question={first.question} isOff={isOff} onAnswer={(answer) => onAnswer(answer.action, answer)} />
    );
  const mayAnswer = (decision: string) => isSeen || !decision.startsWith('accept');
  return (
    <div class="answers" aria-busy={!hasSettled}>
      {answersTo(first, requests.length).map(({ decision, label, means }) => (
        <button
          key={decision}
          type="button"
          title={mayAnswer(decision) ? line(means) : unseenTitle}
          class={decision === 'accept' && !hasHazard ? 'main' : undefined}
          disabled={isOff || !mayAnswer(decision)}
          onClick={() => onAnswer(decision)}
        >
          {line(label)}
        </button>
      ))}
    </div>
  );
}
