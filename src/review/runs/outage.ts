import type { RunSession } from './session.ts';

/** Error codes of unavailable dependencies: agent server, source, database. The review itself has not failed. */
const outages: ReadonlySet<unknown> = new Set([
  'agentUnavailable',
  'connectionFailed',
  'timedOut',
  'sourceUnavailable',
  'rateLimited',
  'secondaryRateLimited',
  'databaseBusy',
  'databaseFull',
  'databaseReadOnly',
  'databaseUnavailable',
]);

/**
 * Marks a retryable failure of a dependency until `outageMs` after the creation of the run. Such a failure does not use up attempts: a
 * failed head is not reviewed automatically again, so an hour without the agent server would lose every review of that hour.
 *
 * @returns the error, with `isOutage` for an outage
 */
export async function markOutage({ context, run }: RunSession, error: unknown): Promise<unknown> {
  const { code, isRetryable } = (error ?? {}) as { readonly code?: unknown; readonly isRetryable?: unknown };
  if (!(error instanceof Error) || isRetryable !== true || !outages.has(code)) return error;
  // Without the database its clock is unknown; the run cannot be saved as failed then either.
  const now = await context.store.now().catch(() => run.createdAt);
  return now - run.createdAt < context.times.outageMs ? Object.assign(error, { isOutage: true }) : error;
}
