import type { NewWrite, StoredRepository, StoredWrite } from '../store/index.ts';
import type { RunContext } from './types.ts';

/** Which pull request a write is for. */
export interface WritePlace {
  readonly repository: Pick<StoredRepository, 'repositoryKey' | 'owner' | 'name'>;
  readonly number: number;
}
export interface PlannedWrite {
  readonly kind: NewWrite['kind'];
  /** Unique for ever: put twice it is one. */
  readonly dedupeKey: string;
  readonly request: Readonly<Record<string, unknown>>;
}

/** Puts a write into the outbox, with the job that sends it. Writes about one pull request are sent in this order. */
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
