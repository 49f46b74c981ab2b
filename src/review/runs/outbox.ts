import type { NewWrite, StoredRepository, StoredWrite } from '../store/index.ts';
import type { RunContext } from './types.ts';

/** Pull request of a write. */
export interface WritePlace {
  readonly repository: Pick<StoredRepository, 'repositoryKey' | 'owner' | 'name'>;
  readonly number: number;
}
export interface PlannedWrite {
  readonly kind: NewWrite['kind'];
  /** Permanently unique: a second write with the same key is ignored. */
  readonly dedupeKey: string;
  readonly request: Readonly<Record<string, unknown>>;
}

/** Adds a write to the outbox, with the job that sends it. Writes of one pull request are sent in the order of these calls. */
export async function putWrite(
  { store }: Pick<RunContext, 'store'>,
  { repository, number }: WritePlace,
  { kind, dedupeKey, request }: PlannedWrite,
  runId: string | null,
): Promise<StoredWrite> {
  const { repositoryKey, owner, name } = repository;
  const write = await store.putWrite(
    { kind, dedupeKey, repositoryKey, runId, request: { owner, name, ...request } },
    (writeId) => ({ kind: 'write', key: `write:${repositoryKey}#${number}`, payload: { writeId } }),
  );
  await store.publish('write.changed', { writeId: write.writeId, kind, status: write.status });
  return write;
}
