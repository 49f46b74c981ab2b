import { type ActorRefFrom, type AnyActorRef, createActor, fromPromise, type StateValue } from 'xstate';
import { type MoveFacts, MoveFailure, type MoveProgress, type MoveWork, moveMachine } from '../../../machines/index.ts';
import { clean } from '../../hosts/index.ts';
import { HttpError } from '../../http/index.ts';
import { messageOf } from '../../lib/index.ts';
import {
  type MoveBundle,
  type MoveRecord,
  type MoveStep,
  type MoveStepResult,
  maxMoveReason,
  moveParts,
} from '../../protocol/index.ts';
import { endAt, type MoveEnd, type Places, placeFor } from './ends.ts';

/** Facts of a move that outlive the Hub. */
export interface StoredMove extends Omit<MoveRecord, 'sentBytes' | 'totalBytes' | 'entries' | 'reason'>, MoveProgress {}

export interface MoveRunOptions extends Places {
  readonly stored: StoredMove;
  /** Whether an earlier Hub began the move: after its end, the hosts of this one are not connected yet. */
  readonly isContinued: boolean;
  readonly seed: number;
  readonly observe: (actor: AnyActorRef, threadId: string) => void;
  /** Resolves when the present state of all moves is on disk. */
  readonly save: () => Promise<void>;
  readonly onEnd: (record: MoveRecord) => void;
}

/** Codes of answers after which a later attempt may succeed. */
const passing: ReadonlySet<string> = new Set([
  ...['hostUnreachable', 'workspaceUnavailable', 'badGateway', 'hubStopping', 'deadlineExceeded', 'requestTimeout'],
  ...['hubInternalError', 'appServerStartFailed', 'appServerUnhealthy', 'portUnavailable', 'placeUnavailable'],
]);

/** Codes of answers after which a place can no longer be asked. After any other one it may still hold the conversation. */
const final: ReadonlySet<string> = new Set(['moveRefused', 'notFound', 'workspaceNotFound', 'hostUnknown']);

function failureOf(error: unknown): MoveFailure {
  if (error instanceof MoveFailure) return error;
  const isRefused = error instanceof HttpError && !passing.has(error.code);
  const reason = clean(messageOf(error)).slice(0, maxMoveReason).toWellFormed();
  return new MoveFailure(isRefused ? 'refused' : 'lost', reason);
}

/** Name of the innermost state. */
const innermost = (value: StateValue): string =>
  typeof value === 'string' ? value : innermost(Object.values(value)[0] ?? '');

/** Leads one move. Its machine decides the steps; this class provides the work. */
export class MoveRun {
  readonly #options: MoveRunOptions;
  readonly #actor: ActorRefFrom<typeof moveMachine>;
  readonly #source: MoveEnd;
  readonly #target: MoveEnd;
  #bundle: MoveBundle | undefined;
  #sent = 0;
  /** The source may have locked the conversation. */
  #mayBeLocked: boolean;

  /** Begins with `start`. */
  constructor(options: MoveRunOptions) {
    this.#options = options;
    const { stored, seed, observe, onEnd } = options;
    const { moveId, isOffered, isCommitting, isCancelled, isRequested, reason } = stored;
    this.#mayBeLocked = options.isContinued || isOffered;
    this.#source = endAt(stored.from, options);
    this.#target = endAt(stored.to, options);
    const work = (run: (signal: AbortSignal) => Promise<MoveFacts>) =>
      fromPromise<MoveFacts, MoveWork>(({ signal }) => this.#worked(run, signal));
    this.#actor = createActor(
      moveMachine.provide({
        actors: {
          ask: work((signal) => this.#ask(signal)),
          prepare: work((signal) => this.#prepare(signal)),
          offer: work((signal) => this.#offer(signal)),
          send: work((signal) => this.#send(signal)),
          commit: work((signal) => this.#commit(signal)),
          finish: work((signal) => this.#atSource('finish', signal)),
          withdraw: work((signal) => this.#withdraw(signal)),
          release: work((signal) => this.#atSource('cancel', signal)),
        },
      }),
      { id: `move:${moveId}`, input: { moveId, seed, isOffered, isCommitting, isCancelled, isRequested, reason } },
    );
    observe(this.#actor, stored.threadId);
    // The end of the Hub stops the actor, too, and does not end the move.
    this.#actor.subscribe({ complete: () => this.#actor.getSnapshot().status === 'done' && onEnd(this.record()) });
  }

  start(): void {
    this.#actor.start();
  }

  /** Goes back, unless the target may have the conversation. */
  cancel(): void {
    this.#actor.send({ type: 'MOVE.CANCEL' });
  }

  record(): MoveRecord {
    const { moveId, threadId, from, to, startedAt } = this.#options.stored;
    const { value, context } = this.#actor.getSnapshot();
    const bytes = this.#bundle?.bytes ?? { conversation: 0, files: 0 };
    return {
      ...{ moveId, threadId, from, to, startedAt },
      state: innermost(value),
      reason: context.reason,
      sentBytes: this.#sent,
      totalBytes: bytes.conversation + bytes.files,
      entries: this.#bundle?.entries ?? 0,
    };
  }

  stored(): StoredMove {
    const { sentBytes: _, totalBytes: __, entries: ___, ...record } = this.record();
    const { isOffered, isCommitting, isCancelled, isRequested } = this.#actor.getSnapshot().context;
    return { ...record, isOffered, isCommitting, isCancelled, isRequested };
  }

  /** Leaves the move to the next Hub. */
  stop(): void {
    this.#actor.stop();
  }

  /** @throws MoveFailure */
  async #worked(run: (signal: AbortSignal) => Promise<MoveFacts>, signal: AbortSignal): Promise<MoveFacts> {
    try {
      // The state is on disk before its work begins.
      await Promise.resolve();
      await this.#options.save();
      signal.throwIfAborted();
      return await run(signal);
    } catch (error) {
      throw failureOf(error);
    }
  }

  async #step(end: MoveEnd, step: Omit<MoveStep, 'moveId' | 'threadId'>, signal: AbortSignal): Promise<MoveStepResult> {
    const { moveId, threadId } = this.#options.stored;
    const result = await end.step({ moveId, threadId, ...step }, signal);
    // An answer that arrives after a cancellation has no effect here.
    signal.throwIfAborted();
    return result;
  }

  async #ask(signal: AbortSignal): Promise<MoveFacts> {
    try {
      await Promise.all([this.#source.ensure(signal), this.#target.ensure(signal)]);
      const [source, target] = await Promise.all([
        this.#step(this.#source, { step: 'state' }, signal),
        this.#step(this.#target, { step: 'state' }, signal),
      ]);
      return { source: source.state, target: target.state };
    } catch (error) {
      // Before the target has anything, the user gets the answer at once.
      if (this.#options.isContinued || this.#actor.getSnapshot().context.isOffered) throw error;
      throw new MoveFailure('refused', failureOf(error).message);
    }
  }

  async #prepare(signal: AbortSignal): Promise<MoveFacts> {
    const { from, to } = this.#options.stored;
    this.#mayBeLocked = true;
    const { bundle } = await this.#step(this.#source, { step: 'prepare', place: placeFor(to, from) }, signal);
    if (!bundle) throw new Error('The source sent no description of the parts.');
    this.#bundle = bundle;
    return {};
  }

  async #offer(signal: AbortSignal): Promise<MoveFacts> {
    await this.#received({ step: 'receive' }, signal);
    return {};
  }

  /** Copies both parts, from the last byte that the target has. */
  async #send(signal: AbortSignal): Promise<MoveFacts> {
    const bundle = this.#parts();
    let received = await this.#received({ step: 'receive' }, signal);
    for (const part of moveParts) {
      while (received[part] < bundle.bytes[part]) {
        const offset = received[part];
        const { data = '' } = await this.#step(this.#source, { step: 'read', part, offset }, signal);
        received = await this.#received({ step: 'write', part, offset, data }, signal);
        if (received[part] <= offset) throw new Error('The target did not take a piece.');
      }
    }
    return {};
  }

  async #received(step: Pick<MoveStep, 'step' | 'part' | 'offset' | 'data'>, signal: AbortSignal) {
    const { bytes } = this.#parts();
    const bundle = step.step === 'receive' ? { bundle: this.#parts() } : {};
    const { received, state } = await this.#step(this.#target, { ...step, ...bundle }, signal);
    const counted = received ?? (state === 'arrived' ? bytes : { conversation: 0, files: 0 });
    this.#sent = counted.conversation + counted.files;
    return counted;
  }

  async #commit(signal: AbortSignal): Promise<MoveFacts> {
    const { from, to } = this.#options.stored;
    const { state } = await this.#step(this.#target, { step: 'commit', place: placeFor(from, to) }, signal);
    if (state !== 'arrived') throw new Error('The target did not confirm the arrival.');
    return {};
  }

  async #atSource(step: 'finish' | 'cancel', signal: AbortSignal): Promise<MoveFacts> {
    try {
      await this.#source.ensure(signal);
      await this.#step(this.#source, { step }, signal);
    } catch (error) {
      throw this.#mayBeLocked ? this.#mayStillHold(error) : error;
    }
    return {};
  }

  /** Failure of a place that may hold the conversation. Invalid settings, e.g., only keep its agent server from starting now. */
  #mayStillHold(error: unknown): unknown {
    const isPassing = error instanceof HttpError && !final.has(error.code);
    return isPassing ? new MoveFailure('lost', failureOf(error).message) : error;
  }

  async #withdraw(signal: AbortSignal): Promise<MoveFacts> {
    try {
      await this.#target.ensure(signal);
      const { state } = await this.#step(this.#target, { step: 'cancel' }, signal);
      return { target: state };
    } catch (error) {
      throw this.#mayStillHold(error);
    }
  }

  #parts(): MoveBundle {
    if (!this.#bundle) throw new Error('The parts are not prepared.');
    return this.#bundle;
  }
}
