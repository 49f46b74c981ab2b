import type { TurnTokens } from '../../machines/index.ts';
import type { InputPart, Turn, TurnError } from '../protocol/index.ts';
import type { ThreadEvent } from './feed.ts';
import type { ModelMessage, ModelProvider } from './model.ts';
import { TurnItems } from './turn-items.ts';

export interface TurnRunOptions {
  readonly threadId: string;
  readonly turnId: string;
  readonly input: readonly InputPart[];
  /** The conversation up to and including this turn's question. */
  readonly messages: readonly ModelMessage[];
  readonly model: string | undefined;
  readonly firstItemNumber: number;
  readonly provider: () => Promise<ModelProvider>;
  readonly publish: (event: ThreadEvent) => void;
  /** Keeps the turn as it stands; called when an item is whole and at the end. */
  readonly save: (turn: Turn) => void;
  /** Called once, after the turn's last event. */
  readonly onEnd: (turn: Turn) => void;
  /** Told of what is not the provider's fault. */
  readonly onBug: (error: unknown) => void;
}

/** One turn from its beginning to its end: the turn machine with a real model in it. */
export class TurnRun {
  readonly #options: TurnRunOptions;
  readonly #items: TurnItems;
  readonly #startedAt = new Date().toISOString();
  #end: Pick<Turn, 'status' | 'completedAt' | 'tokenUsage' | 'error'> = { status: 'running' };
  #interrupt: (() => void) | undefined;
  #isInterrupted = false;
  #streamEnded: Promise<void> = Promise.resolve();

  constructor(options: TurnRunOptions) {
    this.#options = options;
    const { threadId, turnId, firstItemNumber, publish } = options;
    this.#items = new TurnItems({ threadId, id: turnId }, firstItemNumber, publish);
  }

  /** The turn as it stands. */
  snapshot(): Turn {
    const { threadId, turnId } = this.#options;
    return { id: turnId, threadId, startedAt: this.#startedAt, items: this.#items.snapshot(), ...this.#end };
  }

  /** Tells that the turn has started, and lets it run. */
  begin(): void {
    const { threadId, input, publish } = this.#options;
    publish({ method: 'turn/started', params: { threadId, turn: this.snapshot() } });
    this.#items.addUserMessage(input);
    this.#options.save(this.snapshot());
    this.#drive().catch((error: unknown) => {
      this.#options.onBug(error);
      this.#fail({
        code: 'internalError',
        message: 'The turn failed because of a bug; the log of the agent server tells more.',
      });
    });
  }

  /** Ends the turn early. Asked twice, it ends once. */
  interrupt(): void {
    this.#isInterrupted = true;
    this.#interrupt?.();
  }

  /** The machine is loaded with the first turn: a server that only waits needs none. */
  async #drive(): Promise<void> {
    const [{ createActor, fromPromise }, { turnMachine }] = await Promise.all([
      import('xstate'),
      import('../../machines/index.ts'),
    ]);
    const { threadId, turnId, onBug } = this.#options;
    const machine = turnMachine.provide({
      actors: {
        infer: fromPromise(({ signal }) => this.#infer(signal)),
        settle: fromPromise(() => this.#streamEnded),
      },
    });
    const actor = createActor(machine, { input: { threadId, turnId } });
    // Without this observer an error of the machine would end the process.
    actor.subscribe({ error: onBug });
    actor.on('turn.completed', ({ tokens }) => this.#complete(tokens));
    actor.on('turn.failed', ({ failure }) => this.#fail(failure));
    actor.on('turn.cancelled', () => this.#cancel());
    actor.start();
    this.#interrupt = () => actor.send({ type: 'INTERRUPT' });
    if (this.#isInterrupted) this.#interrupt();
  }

  #infer(signal: AbortSignal): Promise<TurnTokens> {
    const inferring = this.#consume(signal);
    this.#streamEnded = inferring.then(
      () => undefined,
      () => undefined,
    );
    return inferring;
  }

  async #consume(signal: AbortSignal): Promise<TurnTokens> {
    const { provider, messages, model, save } = this.#options;
    const source = await provider();
    let tokens: TurnTokens = { inputTokens: 0, outputTokens: 0 };
    for await (const event of source.stream({ model, messages }, signal)) {
      // A provider that does not listen must not talk into a turn that is over.
      if (signal.aborted) break;
      if (event.type === 'usage') tokens = { inputTokens: event.inputTokens, outputTokens: event.outputTokens };
      else this.#items.append(event.type === 'text' ? 'agentMessage' : 'reasoningContent', event.text);
    }
    if (!signal.aborted) save(this.snapshot());
    return tokens;
  }

  #complete({ inputTokens, outputTokens }: TurnTokens): void {
    const { threadId } = this.#options;
    const tokenUsage = { inputTokens, outputTokens, totalTokens: inputTokens + outputTokens };
    this.#finish({ status: 'completed', tokenUsage }, (turn) => ({
      method: 'turn/completed',
      params: { threadId, turn, tokenUsage },
    }));
  }

  #fail(error: TurnError): void {
    const { threadId } = this.#options;
    if (this.#end.status === 'running') this.#items.addError(error);
    this.#finish({ status: 'failed', error }, (turn) => ({ method: 'turn/failed', params: { threadId, turn, error } }));
  }

  #cancel(): void {
    const { threadId } = this.#options;
    this.#finish({ status: 'cancelled' }, (turn) => ({ method: 'turn/cancelled', params: { threadId, turn } }));
  }

  /** A turn ends once, whatever comes later. */
  #finish(end: Pick<Turn, 'status' | 'tokenUsage' | 'error'>, event: (turn: Turn) => ThreadEvent): void {
    if (this.#end.status !== 'running') return;
    this.#items.close();
    this.#end = { ...end, completedAt: new Date().toISOString() };
    const turn = this.snapshot();
    this.#options.save(turn);
    this.#options.publish(event(turn));
    this.#options.onEnd(turn);
  }
}
