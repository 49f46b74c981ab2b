import type { Published } from '../../../machines/index.ts';
import type { StoredDraft } from '../store/index.ts';
import { ReviewRunError } from './errors.ts';
import type { Publication } from './publication.ts';
import type { RunSession } from './session.ts';

/** Result of the publishing step by the status of the draft; undefined while the publication continues. */
const ends: Readonly<Record<StoredDraft['status'], () => Published | undefined>> = {
  draft: () => undefined,
  publishing: () => undefined,
  published: () => ({ outcome: 'settled' }),
  /** A user discarded the draft before its publication. */
  discarded: () => ({ outcome: 'settled' }),
  publishFailed: () => {
    throw new ReviewRunError('publishFailed', 'The source rejected the review.');
  },
};

/** Last step: adds the draft to the outbox and waits up to `writesMs` until it is sent. */
export async function publishRun(
  session: RunSession,
  publication: Publication,
  signal: AbortSignal,
): Promise<Published> {
  const { clock, times } = session.context;
  const draft = await draftOf(session);
  const end = ends[draft.status]();
  if (end) return end;
  await publication.begin(draft);
  const until = clock.now() + times.writesMs;
  while (!signal.aborted) {
    const hint = nextHint(session, publication, signal, until);
    const reached = ends[await statusOf(session)]();
    if (reached || clock.now() >= until) hint.cancel();
    if (reached) return reached;
    if (clock.now() >= until) return { outcome: 'pending' };
    await hint.received;
  }
  throw signal.reason;
}

const missing = () => new ReviewRunError('draftMissing', 'The draft is missing from the store.');

async function draftOf({ context, run }: RunSession): Promise<StoredDraft> {
  const draft = await context.store.draftOfRun(run.runId);
  if (!draft) throw missing();
  return draft;
}

async function statusOf({ context, run }: RunSession): Promise<StoredDraft['status']> {
  const status = await context.store.draftStatus(run.runId);
  if (!status) throw missing();
  return status;
}

/** Waits for a hint that the draft may have changed, until `until`. Create it before reading the draft, so that no change is missed. */
function nextHint({ context }: RunSession, publication: Publication, signal: AbortSignal, until: number) {
  const { store, clock } = context;
  const { promise, resolve } = Promise.withResolvers<void>();
  const done = () => resolve();
  // Each change of a draft publishes an event, on whichever replica it is made.
  const stopListening = store.onWake((what) => what === 'events' && done());
  const removers = [publication.onSettled(done), stopListening, () => signal.removeEventListener('abort', done)];
  signal.addEventListener('abort', done, { once: true });
  const timer = clock.setTimeout(done, Math.max(0, until - clock.now()));
  const removeListeners = () => {
    clock.clearTimeout(timer);
    for (const remove of removers) remove();
  };
  return { received: promise.finally(removeListeners), cancel: done };
}
