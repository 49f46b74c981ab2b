import { sql } from 'kysely';
import type { Database } from './database.ts';
import { type Job, type Lease, LeaseLostError } from './types.ts';

/** Column values of a row without a holder. */
export const noHolder = { leaseOwner: null } as const;

const isHeld = ({ owner, token }: Lease) => sql`"leaseOwner" = ${owner} and "leaseToken" = ${token}`;

/**
 * SQL condition: this run, if the lease is the latest one. Each claim increments the token, also a claim by the same owner. An expired
 * lease still counts as held until another claim succeeds.
 */
export const isHeldRun = (runId: string, lease: Lease) => sql<boolean>`("runId" = ${runId} and ${isHeld(lease)})`;

/** SQL condition: this job, if its lease is the latest one. */
export const isHeldJob = ({ jobId, lease }: Job) => sql<boolean>`("jobId" = ${jobId} and ${isHeld(lease)})`;

export const lost = (runId: string) => new LeaseLostError(`The lease of run ${runId} was lost`);

/** Ends all leases, because their holders have exited. Tokens remain, so a holder that does come back has lost its lease. */
export const endLeases = (database: Database): Promise<void> =>
  database.write(async (rows) => {
    await rows.updateTable('runs').set({ leaseUntil: 0 }).where('leaseOwner', 'is not', null).execute();
    await rows.updateTable('jobs').set({ dueAt: database.now }).where('leaseOwner', 'is not', null).execute();
    await rows.deleteFrom('roles').execute();
  });
