import type { Database, Rows } from './database.ts';
import type { Backlog, Job, ReviewStore } from './types.ts';

/** Counts pending work for metrics. */
export function backlog(database: Database): Pick<ReviewStore, 'backlog'> {
  return { backlog: () => database.snapshot((rows) => counted(database, rows)) };
}

async function counted(database: Database, rows: Rows): Promise<Backlog> {
  const jobs = await rows
    .selectFrom('jobs')
    .select(({ fn }) => ['kind', fn.countAll<number>().as('all'), fn.count<number>('leaseOwner').as('taken')])
    .groupBy('kind')
    .orderBy('kind')
    .execute();
  const oldest = await rows
    .selectFrom('jobs')
    .select('dueAt')
    .where('leaseOwner', 'is', null)
    .where('dueAt', '<=', database.now)
    .orderBy('dueAt')
    .limit(1)
    .executeTakeFirst();
  const dead = await rows
    .selectFrom('deadJobs')
    .select(({ fn }) => fn.countAll<number>().as('count'))
    .execute();
  const runs = await rows
    .selectFrom('runs')
    .select(({ fn }) => ['phase', fn.countAll<number>().as('count')])
    .where('phase', 'is not', null)
    .groupBy('phase')
    .execute();
  const writes = await rows
    .selectFrom('writes')
    .select(({ fn }) => ['status', fn.countAll<number>().as('count')])
    .where('status', 'in', ['pending', 'failed'])
    .groupBy('status')
    .execute();
  const inPhase = (phase: string) => Number(runs.find((each) => each.phase === phase)?.count ?? 0);
  const withStatus = (status: string) => Number(writes.find((each) => each.status === status)?.count ?? 0);
  return {
    jobs: new Map(
      jobs.map(({ kind, all, taken }) => [
        kind as Job['kind'],
        { waiting: Number(all) - Number(taken), taken: Number(taken) },
      ]),
    ),
    oldestDueAt: oldest ? Number(oldest.dueAt) : null,
    deadJobs: Number(dead[0]?.count ?? 0),
    runs: { waiting: inPhase('waiting'), active: inPhase('active') },
    writes: { pending: withStatus('pending'), failed: withStatus('failed') },
  };
}
