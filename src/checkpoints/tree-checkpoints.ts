import { type ActorRefFrom, type AnyActorRef, createActor, fromPromise } from 'xstate';
import { type CheckpointRequestKind, type CheckpointWork, checkpointMachine } from '../../machines/index.ts';
import { defaults } from '../protocol/index.ts';
import type { CallArguments, CallName, CallResult, Engines, TreePlace } from './calls.ts';
import type { KnownWork } from './death.ts';
import { CheckpointError } from './errors.ts';
import { type Owner, ownerKey } from './owner.ts';
import type { RestoreFindings } from './plan.ts';
import type { ArrivalRequest, MarkRequest, MergeRequest, RestoreOutcome, RestoreRequest } from './requests.ts';

export interface TreeCheckpointsOptions {
  readonly place: TreePlace;
  /** Engines that do the work; those of several trees may share a thread. */
  readonly engines: Engines;
  /** Takes turns of a conversation back; ignores those that are missing. */
  readonly rollback: (threadId: string, turnIds: readonly string[]) => void;
  /** Whether a conversation works in a directory. In a copy that a killed process made, there may be none. */
  readonly isInUse: (directory: string) => boolean;
  /** Facts about a turn that a dead process left open, from its stored calls; undefined: none. */
  readonly workOf?: ((turn: Owner) => KnownWork | undefined) | undefined;
  /** Receives the machine before it starts. */
  readonly observe?: ((actor: AnyActorRef) => void) | undefined;
}

/** A completed restore, or a refused one with the reason. */
export type RestoreResult =
  | ({ readonly kind: 'restored' } & RestoreOutcome)
  | ({ readonly kind: 'refused' } & RestoreFindings);

type Payload =
  | { readonly kind: 'mark'; readonly mark: MarkRequest }
  | { readonly kind: 'restore'; readonly restore: RestoreRequest | MergeRequest | ArrivalRequest }
  | { readonly kind: 'task'; readonly task: () => Promise<unknown> };

interface Pending {
  readonly payload: Payload;
  readonly answer: PromiseWithResolvers<unknown>;
  result: unknown;
}

/** The checkpoints of one tree. Its machine decides the steps; this class provides the work. */
export class TreeCheckpoints {
  readonly #options: TreeCheckpointsOptions;
  readonly #actor: ActorRefFrom<typeof checkpointMachine>;
  readonly #pending = new Map<number, Pending>();
  readonly #closed = Promise.withResolvers<void>();
  #nextId = 1;
  /** Number of the restore at work, and the paths that it left. */
  #restore: { readonly number: number; left: readonly string[] } | undefined;

  constructor(options: TreeCheckpointsOptions) {
    this.#options = options;
    const { place, observe } = options;
    const { treeId } = place;
    this.#actor = createActor(
      checkpointMachine.provide({
        actors: {
          recover: fromPromise(() => this.#recover()),
          markDeath: fromPromise(() => this.#markDeath()),
          mark: fromPromise(({ input }) => this.#mark(input)),
          prune: fromPromise(() => this.#call('prune')),
          plan: fromPromise(({ input }) => this.#plan(input)),
          apply: fromPromise(() => this.#apply()),
          conclude: fromPromise(({ input }) => this.#conclude(input)),
          serve: fromPromise(({ input }) => this.#serve(input)),
          release: fromPromise(() => this.#release()),
        },
      }),
      { id: `checkpoint:${treeId}`, input: { treeId, restMs: defaults.agent.fileCheckpointRestMs } },
    );
    observe?.(this.#actor);
    this.#actor.on('requests.done', ({ ids }) => {
      for (const pending of this.#take(ids)) pending.answer.resolve(pending.result);
    });
    this.#actor.on('requests.failed', ({ ids, message }) => {
      for (const pending of this.#take(ids)) pending.answer.reject(new CheckpointError(message));
    });
    this.#actor.subscribe({ complete: () => this.#end() });
    this.#actor.start();
  }

  /** Saves the files when a turn starts, resumes or ends. @throws CheckpointError */
  async mark(mark: MarkRequest): Promise<void> {
    await this.#request(mark.edge, { kind: 'mark', mark });
  }

  /** Restores files, or brings the changes of a fork or of a conversation from another machine in. @throws CheckpointError */
  async restore(restore: RestoreRequest | MergeRequest | ArrivalRequest): Promise<RestoreResult> {
    return (await this.#request('restore', { kind: 'restore', restore })) as RestoreResult;
  }

  /**
   * Calls a method of the engine when no other work is in progress.
   * @throws CheckpointError, and any error of the method as its message
   */
  async ask<N extends CallName>(name: N, ...args: CallArguments<N>): Promise<CallResult<N>> {
    const task = () => this.#call(name, ...args);
    return (await this.#request('task', { kind: 'task', task })) as CallResult<N>;
  }

  /** Resolves when the work that a dead process began is completed, and the requests before. @throws CheckpointError */
  async ready(): Promise<void> {
    await this.#request('task', { kind: 'task', task: () => Promise.resolve() });
  }

  /** Resolves when all waiting requests are done and the store is closed. */
  async close(): Promise<void> {
    if (this.#actor.getSnapshot().status === 'active') this.#actor.send({ type: 'CLOSE' });
    await this.#closed.promise;
  }

  #call<N extends CallName>(name: N, ...args: CallArguments<N>): Promise<CallResult<N>> {
    return this.#options.engines.call(this.#options.place, name, args);
  }

  #release(): Promise<void> {
    return this.#options.engines.release(this.#options.place.treeId);
  }

  #request(kind: CheckpointRequestKind, payload: Payload): Promise<unknown> {
    if (this.#actor.getSnapshot().status !== 'active') {
      return Promise.reject(new CheckpointError('the checkpoints are closed'));
    }
    const id = this.#nextId++;
    const answer = Promise.withResolvers<unknown>();
    this.#pending.set(id, { payload, answer, result: undefined });
    this.#actor.send({ type: 'REQUEST', request: { id, kind } });
    return answer.promise;
  }

  #take(ids: readonly number[]): Pending[] {
    return ids.flatMap((id) => {
      const pending = this.#pending.get(id);
      this.#pending.delete(id);
      return pending ? [pending] : [];
    });
  }

  async #recover(): Promise<void> {
    const interrupted = await this.#call('interrupted');
    for (const { number, thread, conversation } of interrupted) {
      const left = await this.#call('apply', number, true);
      this.#options.rollback(thread, conversation);
      await this.#call('conclude', number, left, true);
    }
    if (interrupted.length === 0) await this.#call('clearStaging');
    for (const target of await this.#call('openCopies')) {
      await this.#call(this.#options.isInUse(target) ? 'keepCopy' : 'removeCopy', target);
    }
  }

  async #markDeath(): Promise<void> {
    const open = (await this.#call('turns')).filter(({ endSeq }) => endSeq === null);
    if (open.length === 0) return;
    const known = open.flatMap((turn) => {
      const work = this.#options.workOf?.(turn);
      return work ? [[ownerKey(turn), work] as const] : [];
    });
    await this.#call('markDeath', Object.fromEntries(known));
  }

  async #mark({ requests }: CheckpointWork): Promise<void> {
    const marks = requests.flatMap(({ id }) => {
      const payload = this.#pending.get(id)?.payload;
      return payload?.kind === 'mark' ? [payload.mark] : [];
    });
    await this.#call('mark', marks);
  }

  async #plan(work: CheckpointWork): Promise<{ readonly isRefused: boolean }> {
    const [pending, { restore }] = this.#restoreOf(work);
    const prepared = await this.#prepare(restore);
    if (prepared.number === undefined) {
      const { number: _, ...found } = prepared;
      pending.result = { kind: 'refused', ...found } satisfies RestoreResult;
      return { isRefused: true };
    }
    this.#restore = { number: prepared.number, left: [] };
    return { isRefused: false };
  }

  #prepare(restore: RestoreRequest | MergeRequest | ArrivalRequest) {
    if ('fork' in restore) return this.#call('prepareMerge', restore);
    return 'transfer' in restore ? this.#call('prepareArrival', restore) : this.#call('prepare', restore);
  }

  async #apply(): Promise<void> {
    const restore = this.#running;
    restore.left = await this.#call('apply', restore.number);
  }

  async #conclude(work: CheckpointWork): Promise<void> {
    const [pending, { restore }] = this.#restoreOf(work);
    const { number, left } = this.#running;
    if ('conversation' in restore) this.#options.rollback(restore.thread, restore.conversation);
    const outcome = await this.#call('conclude', number, left);
    pending.result = { kind: 'restored', ...outcome } satisfies RestoreResult;
    this.#restore = undefined;
  }

  async #serve({ requests }: CheckpointWork): Promise<void> {
    for (const { id } of requests) {
      const pending = this.#pending.get(id);
      if (pending?.payload.kind === 'task') pending.result = await pending.payload.task();
    }
  }

  get #running() {
    if (!this.#restore) throw new CheckpointError('no restore is under way');
    return this.#restore;
  }

  #restoreOf({ requests }: CheckpointWork): [Pending, Extract<Payload, { kind: 'restore' }>] {
    const pending = this.#pending.get(requests[0]?.id ?? 0);
    if (pending?.payload.kind !== 'restore') throw new CheckpointError('the request is not a restore');
    return [pending, pending.payload];
  }

  #end(): void {
    for (const { answer } of this.#pending.values()) answer.reject(new CheckpointError('the checkpoints are closed'));
    this.#pending.clear();
    this.#release().then(this.#closed.resolve, this.#closed.reject);
  }
}
