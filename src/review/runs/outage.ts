import type { RunSession } from './session.ts';

/** Of what a review stands on: the agent server, the forge, the database. They say nothing of the review itself. */
const outages: ReadonlySet<unknown> = new Set([
  'agentUnavailable',
  'connectionFailed',
  'timedOut',
  'sourceUnavailable',
  'rateLimited',
  'secondaryRateLimited',
  'databaseBusy',
  'databaseFull',
  'databaseUnavailable',
]);

/**
 * Marks the failure of something that is away and may come back: it is waited for, however many attempts that takes, but not
 * for ever. A head that is given up is not reviewed by itself again, so an hour without the agent server would lose every
 * review of that hour.
 *
 * @returns the error, with `isOutage` when it is one
 */
export async function markOutage({ context, run }: RunSession, error: unknown): Promise<unknown> {
  const { code, isRetryable } = (error ?? {}) as { readonly code?: unknown; readonly isRetryable?: unknown };
  if (!(error instanceof Error) || isRetryable !== true || !outages.has(code)) return error;
  // Without the database nobody knows how late it is; then nothing can be written either.
  const now = await context.store.now().catch(() => run.createdAt);
  return now - run.createdAt < context.times.outageMs ? Object.assign(error, { isOutage: true }) : error;
}
