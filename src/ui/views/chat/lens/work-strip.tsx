import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import type { DashboardSession } from '../../../../protocol/index.ts';
import type { App } from '../../../app/app.ts';
import { href } from '../../../app/router.ts';
import { StateStrip, type Work } from '../../../parts/state-strip.tsx';
import { eventPageOf } from '../../sessions/event-page.ts';
import type { Conversation } from '../data/conversation.ts';
import { lensAt } from './cursor.ts';

/** Sums of a conversation, from the list of conversations. */
export const workOf = ({ turnDurationMs, toolDurationMs, approvalWaitMs, pauseMs }: DashboardSession): Work => ({
  totalMs: turnDurationMs,
  toolMs: toolDurationMs,
  waitMs: approvalWaitMs,
  pauseMs,
});

/** Time shares of a conversation with an ended turn. A press opens its trace. */
export function WorkStrip({ app, conversation }: { readonly app: App; readonly conversation: Conversation }) {
  const session = useSignal<DashboardSession | undefined>(undefined);
  const { threadId, transcript } = conversation;
  transcript.changes.value;
  const ends = transcript.rows.filter(({ kind }) => kind === 'end').length;
  useEffect(() => {
    // Without an ended turn there may be no trace.
    if (threadId === null || ends === 0) return;
    const abort = new AbortController();
    eventPageOf(app, threadId, { limit: 1, bodies: 'none' }, abort.signal).then(
      (page) => {
        session.value = page.session;
      },
      () => {
        // The strip is optional: another part of the page reports an unreachable server.
      },
    );
    return () => abort.abort();
  }, [threadId, ends]);
  if (threadId === null || !session.value) return null;
  return (
    <a class="work-strip" href={href(lensAt(threadId, 'trace'))}>
      <StateStrip work={workOf(session.value)} />
    </a>
  );
}
