import { sql } from 'kysely';
import type { Database } from './database.ts';
import { type Job, type Lease, LeaseLostError } from './types.ts';

/** Nobody has it. */
export const nobody = { leaseOwner: null } as const;

const isHeld = ({ owner, token }: Lease) => sql`"leaseOwner" = ${owner} and "leaseToken" = ${token}`;

/**
 * SQL: this run, and only while the lease is the one that was given last. The token has grown when another has taken it, also
 * when that was the same owner; the time does not matter, because nobody else works on what nobody else has taken.
 */
export const isHeldRun = (runId: string, lease: Lease) => sql<boolean>`("runId" = ${runId} and ${isHeld(lease)})`;

/** The same of a job. */
export const isHeldJob = ({ jobId, lease }: Job) => sql<boolean>`("jobId" = ${jobId} and ${isHeld(lease)})`;

export const lost = (runId: string) => new LeaseLostError(`The lease of run ${runId} was lost`);

/** Whoever had a lease is gone: everything may be taken at once. A token counts all the same, should one come back. */
export const endLeases = (database: Database): Promise<void> =>
  database.write(async (rows) => {
    await rows.updateTable('runs').set({ leaseUntil: 0 }).where('leaseOwner', 'is not', null).execute();
    await rows.updateTable('jobs').set({ dueAt: database.now }).where('leaseOwner', 'is not', null).execute();
    await rows.deleteFrom('roles').execute();
  });
