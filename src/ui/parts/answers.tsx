import { visible } from '../../lib/browser.ts';
import { answersTo } from '../../protocol/browser.ts';
import type { ApprovalDecision, ApprovalRequest } from '../../protocol/index.ts';
import { unseenTitle } from './consent.tsx';

interface AnswersProps {
  readonly request: Parameters<typeof answersTo>[0] & Pick<ApprovalRequest, 'requestId'>;
  readonly isOff: boolean;
  /** Whether the end of the request was in view; before, only answers that decline are possible. */
  readonly isSeen: boolean;
  readonly onAnswer: (decision: ApprovalDecision) => void;
}

/** Buttons of a request, each with its scope; the same in the inbox and in a conversation. */
export function Answers({ request, isOff, isSeen, onAnswer }: AnswersProps) {
  const mayAnswer = (decision: string) => isSeen || !decision.startsWith('accept');
  return (
    <div class="answers">
      {answersTo(request).map(({ decision, label, means }) => (
        <button
          key={decision}
          type="button"
          title={mayAnswer(decision) ? visible(means, { multiline: false }) : unseenTitle}
          class={decision === 'accept' ? 'main' : undefined}
          disabled={isOff || !mayAnswer(decision)}
          onClick={() => onAnswer(decision)}
        >
          {visible(label, { multiline: false })}
        </button>
      ))}
    </div>
  );
}
