import type { Published } from '../../../machines/index.ts';
import type { StoredDraft } from '../store/index.ts';
import { ReviewRunError } from './errors.ts';
import type { Publication } from './publication.ts';
import type { RunSession } from './session.ts';

/** Where a draft stands, as far as a run that publishes it goes on from there. */
const ends: Readonly<Record<StoredDraft['status'], () => Published | undefined>> = {
  draft: () => undefined,
  publishing: () => undefined,
  published: () => ({ outcome: 'settled' }),
  /** A person took it back in time. */
  discarded: () => ({ outcome: 'settled' }),
  publishFailed: () => {
    throw new ReviewRunError('publishFailed', 'The source refused the review.');
  },
};

/** Last step: puts the draft into the outbox, and waits a while until it was sent. */
export async function publishRun(
  session: RunSession,
  publication: Publication,
  signal: AbortSignal,
): Promise<Published> {
  const { clock, times } = session.context;
  const look = async () => {
    const draft = await draftOf(session);
    return { draft, end: ends[draft.status]() };
  };
  const { draft, end } = await look();
  if (end) return end;
  await publication.begin(draft);
  const until = clock.now() + times.writesMs;
  while (!signal.aborted) {
    const settled = nextNews(session, publication, signal, until);
    const { end: reached } = await look();
    if (reached || clock.now() >= until) settled.forget();
    if (reached) return reached;
    if (clock.now() >= until) return { outcome: 'pending' };
    await settled.heard;
  }
  throw signal.reason;
}

async function draftOf({ context, run }: RunSession): Promise<StoredDraft> {
  const draft = await context.store.draftOfRun(run.runId);
  if (!draft) throw new ReviewRunError('draftMissing', 'The draft is not there any more.');
  return draft;
}

/** The next hint that something may have changed, here or in another process. Listens before anybody looks. */
function nextNews({ context }: RunSession, publication: Publication, signal: AbortSignal, until: number) {
  const { store, clock } = context;
  const { promise, resolve } = Promise.withResolvers<void>();
  const hear = () => resolve();
  const ends = [publication.onSettled(hear), store.onWake(hear), () => signal.removeEventListener('abort', hear)];
  signal.addEventListener('abort', hear, { once: true });
  const late = clock.setTimeout(hear, Math.max(0, until - clock.now()));
  const forget = () => {
    clock.clearTimeout(late);
    for (const end of ends) end();
  };
  return { heard: promise.finally(forget), forget: hear };
}
