import { type ActorRefFrom, type AnyActorRef, createActor, fromPromise } from 'xstate';
import { type MoveEvent, type MoveFacts, type MoveOutcome, moveMachine } from '../../../machines/index.ts';
import { HttpError } from '../../http/index.ts';
import { messageOf } from '../../lib/index.ts';
import {
  type MoveBundle,
  type MoveRecord,
  type MoveStep,
  type MoveStepResult,
  moveParts,
} from '../../protocol/index.ts';
import { endAt, type MoveEnd, type Places, placeFor } from './ends.ts';

/** Facts of a move that outlive the Hub. */
export interface StoredMove extends Omit<MoveRecord, 'sentBytes' | 'totalBytes' | 'entries'> {
  readonly isOffered: boolean;
  readonly isCancelled: boolean;
}

export interface MoveRunOptions extends Places {
  readonly stored: StoredMove;
  readonly seed: number;
  readonly observe: (actor: AnyActorRef, threadId: string) => void;
  /** Resolves when the present state of all moves is on disk. */
  readonly save: () => Promise<void>;
  readonly onEnd: (record: MoveRecord) => void;
}

/** Codes of answers that may change by themselves. */
const passing: ReadonlySet<string> = new Set([
  ...['hostUnreachable', 'workspaceUnavailable', 'badGateway', 'hubStopping', 'deadlineExceeded', 'requestTimeout'],
  ...['hubInternalError', 'appServerStartFailed', 'appServerUnhealthy', 'portUnavailable', 'placeUnavailable'],
]);

/** Leads one move. Its machine decides the steps; this class provides the work. */
export class MoveRun {
  readonly #options: MoveRunOptions;
  readonly #actor: ActorRefFrom<typeof moveMachine>;
  readonly #source: MoveEnd;
  readonly #target: MoveEnd;
  readonly #over = new AbortController();
  #bundle: MoveBundle | undefined;
  #sent = 0;

  constructor(options: MoveRunOptions) {
    this.#options = options;
    const { stored, seed, observe, onEnd } = options;
    const { moveId, isOffered, isCancelled, reason } = stored;
    this.#source = endAt(stored.from, options);
    this.#target = endAt(stored.to, options);
    const work = (run: () => Promise<MoveOutcome | undefined>) =>
      fromPromise<MoveOutcome, { readonly moveId: string }>(() => this.#outcome(run));
    this.#actor = createActor(
      moveMachine.provide({
        actors: {
          ask: work(() => this.#ask()),
          prepare: work(() => this.#prepare()),
          offer: work(() => this.#offer()),
          send: work(() => this.#send()),
          commit: work(() => this.#commit()),
          finish: work(() => this.#atSource('finish')),
          withdraw: work(() => this.#withdraw()),
          release: work(() => this.#atSource('cancel')),
        },
      }),
      { id: `move:${moveId}`, input: { moveId, seed, isOffered, isCancelled, reason } },
    );
    observe(this.#actor, stored.threadId);
    this.#actor.subscribe({ complete: () => onEnd(this.record()) });
  }

  start(): void {
    this.#actor.start();
  }

  send(event: MoveEvent): void {
    this.#actor.send(event);
  }

  get isOver(): boolean {
    return this.#actor.getSnapshot().status === 'done';
  }

  record(): MoveRecord {
    const { moveId, threadId, from, to, startedAt } = this.#options.stored;
    const { value, context } = this.#actor.getSnapshot();
    const bytes = this.#bundle?.bytes ?? { conversation: 0, files: 0 };
    return {
      ...{ moveId, threadId, from, to, startedAt },
      state: typeof value === 'string' ? value : (Object.keys(value)[0] ?? ''),
      reason: context.reason,
      sentBytes: this.#sent,
      totalBytes: bytes.conversation + bytes.files,
      entries: this.#bundle?.entries ?? 0,
    };
  }

  stored(): StoredMove {
    const { sentBytes: _, totalBytes: __, entries: ___, ...record } = this.record();
    const { isOffered, isCancelled } = this.#actor.getSnapshot().context;
    return { ...record, isOffered, isCancelled };
  }

  /** Leaves the move to the next Hub. */
  stop(): void {
    this.#over.abort();
    this.#actor.stop();
  }

  async #outcome(run: () => Promise<MoveOutcome | undefined>): Promise<MoveOutcome> {
    try {
      // The state is on disk before its work begins.
      await Promise.resolve();
      await this.#options.save();
      return (await run()) ?? { kind: 'done' };
    } catch (error) {
      const isRefused = error instanceof HttpError && !passing.has(error.code);
      return { kind: isRefused ? 'refused' : 'lost', reason: messageOf(error) };
    }
  }

  #step(end: MoveEnd, step: Omit<MoveStep, 'moveId' | 'threadId'>): Promise<MoveStepResult> {
    const { moveId, threadId } = this.#options.stored;
    return end.step({ moveId, threadId, ...step }, this.#over.signal);
  }

  async #ask(): Promise<MoveOutcome> {
    const { signal } = this.#over;
    try {
      await Promise.all([this.#source.ensure(signal), this.#target.ensure(signal)]);
      const [source, target] = await Promise.all([
        this.#step(this.#source, { step: 'state' }),
        this.#step(this.#target, { step: 'state' }),
      ]);
      return { kind: 'done', facts: { source: source.state, target: target.state } satisfies MoveFacts };
    } catch (error) {
      // Before the target has anything, the user gets the answer at once.
      if (this.#actor.getSnapshot().context.isOffered) throw error;
      return { kind: 'refused', reason: messageOf(error) };
    }
  }

  async #prepare(): Promise<undefined> {
    const { from, to } = this.#options.stored;
    const { bundle } = await this.#step(this.#source, { step: 'prepare', place: placeFor(to, from) });
    if (!bundle) throw new Error('The source sent no description of the parts.');
    this.#bundle = bundle;
  }

  async #offer(): Promise<undefined> {
    await this.#received({ step: 'receive' });
  }

  /** Copies both parts, from the last byte that the target has. */
  async #send(): Promise<undefined> {
    const bundle = this.#parts();
    let received = await this.#received({ step: 'receive' });
    for (const part of moveParts) {
      while (received[part] < bundle.bytes[part]) {
        const offset = received[part];
        const { data = '' } = await this.#step(this.#source, { step: 'read', part, offset });
        received = await this.#received({ step: 'write', part, offset, data });
        if (received[part] <= offset) throw new Error('The target did not take a piece.');
      }
    }
  }

  async #received(step: Pick<MoveStep, 'step' | 'part' | 'offset' | 'data'>) {
    const bundle = step.step === 'receive' ? { bundle: this.#parts() } : {};
    const { received, state } = await this.#step(this.#target, { ...step, ...bundle });
    const { bytes } = this.#parts();
    const counted = received ?? (state === 'arrived' ? bytes : { conversation: 0, files: 0 });
    this.#sent = counted.conversation + counted.files;
    return counted;
  }

  async #commit(): Promise<undefined> {
    const { from, to } = this.#options.stored;
    const { state } = await this.#step(this.#target, { step: 'commit', place: placeFor(from, to) });
    if (state !== 'arrived') throw new Error('The target did not confirm the arrival.');
  }

  async #atSource(step: 'finish' | 'cancel'): Promise<undefined> {
    await this.#source.ensure(this.#over.signal);
    await this.#step(this.#source, { step });
  }

  async #withdraw(): Promise<MoveOutcome> {
    await this.#target.ensure(this.#over.signal);
    const { state } = await this.#step(this.#target, { step: 'cancel' });
    return { kind: 'done', facts: { source: 'leaving', target: state } };
  }

  #parts(): MoveBundle {
    if (!this.#bundle) throw new Error('The parts are not prepared.');
    return this.#bundle;
  }
}
