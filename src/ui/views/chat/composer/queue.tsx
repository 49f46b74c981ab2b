import { messageOf, visible } from '../../../../lib/browser.ts';
import { cutText, writtenIn } from '../../../../protocol/browser.ts';
import type { QueuedInput } from '../../../../protocol/index.ts';
import type { App } from '../../../app/app.ts';
import type { Conversation } from '../data/conversation.ts';
import type { Unsent } from '../data/drafts.ts';

const lineChars = 200;
const lineOf = (input: QueuedInput['input'] | Unsent['input']): string =>
  visible(cutText(writtenIn(input) || 'Picture', lineChars), { multiline: false });

/** Messages that wait for a connection or for the end of the running turn. */
export function Queue({ app, conversation }: { readonly app: App; readonly conversation: Conversation }) {
  const unsent = conversation.unsent.value;
  const queue = conversation.queue.value;
  if (unsent.length + queue.length === 0) return null;
  const doing = (work: Promise<void>) => {
    work.catch((error: unknown) => app.toast({ text: messageOf(error), tone: 'danger' }));
  };
  const isSending = conversation.state.hasTag('live');
  return (
    <ul class="queue" aria-label="Waiting messages">
      {queue.map((queued) => (
        <li key={queued.id}>
          <span class="quiet">Next</span>
          <span class="cut">{lineOf(queued.input)}</span>
          <button type="button" class="bare" onClick={() => doing(conversation.sendNow(queued))}>
            Now
          </button>
          <button
            type="button"
            class="bare"
            onClick={() => doing(conversation.removeQueued(queued).then(() => conversation.onReturned?.(queued.input)))}
          >
            Edit
          </button>
          <button type="button" class="bare" onClick={() => doing(conversation.removeQueued(queued))}>
            Remove
          </button>
        </li>
      ))}
      {unsent.map(({ messageId, input }) => (
        <li key={messageId}>
          <span class="quiet">{isSending ? 'Sending' : 'Not sent yet'}</span>
          <span class="cut">{lineOf(input)}</span>
          <button type="button" class="bare" onClick={() => conversation.withdraw(messageId)}>
            Remove
          </button>
        </li>
      ))}
    </ul>
  );
}
