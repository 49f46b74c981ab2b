import { useLayoutEffect, useRef } from 'preact/hooks';
import type { ApprovalDecision, QuestionAnswer } from '../../../protocol/index.ts';
import type { App } from '../../app/app.ts';
import { lastName } from '../../parts/format.ts';
import { RequestCard } from '../inbox/card.tsx';
import { rounds } from '../inbox/rounds.ts';
import { wordsOf } from './data/call-words.ts';
import type { Conversation } from './data/conversation.ts';

interface ApprovalsProps {
  readonly app: App;
  readonly conversation: Conversation;
}

/** The oldest waiting request of the conversation. It takes no focus, and no answer in the moment in which it appears. */
export function Approvals({ app, conversation }: ApprovalsProps) {
  const [group, ...others] = rounds(conversation.approvals.value, (request) => request);
  const panel = useRef<HTMLElement>(null);
  const isByKey = useRef(false);
  const id = group?.[0].requestId;
  useLayoutEffect(() => {
    // The focus of a removed button moves to the next question, or to the box.
    if (isByKey.current) (panel.current ?? document.querySelector<HTMLElement>('.composer textarea'))?.focus();
    isByKey.current = false;
  }, [id]);
  if (!group) return null;
  const answer = (decision: ApprovalDecision, answered?: QuestionAnswer) => {
    isByKey.current = document.activeElement?.matches(':focus-visible') ?? false;
    void conversation.decideAll(
      group.map(({ requestId }) => requestId),
      decision,
      answered,
    );
  };
  // Subscribes to the list of rows: a call may come after its question.
  const hasRows = conversation.transcript.changes.value >= 0;
  const path = app.page.value?.workspacePath;
  return (
    <section ref={panel} class="approval" aria-label={group[0].question ? 'Question' : 'Approval'} tabIndex={-1}>
      <RequestCard
        key={id}
        requests={group}
        name={lastName(path ?? '')}
        path={path}
        now={app.now.value}
        outcome={null}
        isOff={!conversation.state.matches({ linked: { live: { approval: 'answerable' } } })}
        changeOf={({ turnId, callId }) => {
          const row = hasRows ? conversation.transcript.tool(turnId, callId) : undefined;
          return row ? wordsOf(row).change : null;
        }}
        onAnswer={answer}
      >
        {others.length > 0 && <span class="quiet">1 of {others.length + 1}</span>}
      </RequestCard>
    </section>
  );
}
