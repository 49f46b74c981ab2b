import type { ModelListResult, Turn } from '../../protocol/index.ts';
import { modelFailure } from '../model.ts';
import type { StoredThread } from '../thread-store.ts';
import type { Feed } from './feed.ts';
import { completeServices, type RuntimeOptions, type RuntimeServices } from './services.ts';
import {
  endCrashedTraces,
  recoverTurns,
  ThreadCatalog,
  ThreadFiles,
  ThreadMoves,
  ThreadRegistry,
  ThreadTools,
  TurnControl,
  Turns,
} from './thread/index.ts';
import { Tracer } from './tracer.ts';
import type { SuspendOptions } from './turn/index.ts';

const modelListMs = 15_000;

/**
 * Threads of one workspace and the turns that run in them: at most one per thread. The runtime publishes everything through `feed` as
 * notifications and server requests of the protocol. A method that starts something returns its first state, and a function that
 * begins it, so that an answer can be sent before the events that it causes. Errors are `AgentError`, named by the table of the
 * protocol.
 */
export class Runtime {
  readonly feed: Feed;
  readonly threads: ThreadCatalog;
  readonly turns: TurnControl;
  readonly files: ThreadFiles;
  readonly moves: ThreadMoves;
  readonly #services: RuntimeServices;
  readonly #registry: ThreadRegistry;
  readonly #tools: ThreadTools;
  readonly #threadTurns: Turns;
  readonly #suspended = Promise.withResolvers<void>();

  constructor(options: RuntimeOptions) {
    const services = completeServices(options);
    const registry = new ThreadRegistry(services);
    const tools = new ThreadTools(services);
    const threadTurns = new Turns(services, registry, tools, (thread, turn) => this.#onTurnEnd(thread, turn));
    this.feed = services.feed;
    this.threads = new ThreadCatalog(services, registry, tools, threadTurns);
    this.turns = new TurnControl(services, registry, threadTurns);
    this.files = new ThreadFiles(services, registry, threadTurns, this.threads);
    this.moves = new ThreadMoves(services, registry, threadTurns);
    this.#services = services;
    this.#registry = registry;
    this.#tools = tools;
    this.#threadTurns = threadTurns;
    const { store, traces, clean } = services;
    recoverTurns({ services, registry, turns: threadTurns });
    if (traces) {
      const tracer = services.tracer ?? new Tracer(traces, clean);
      endCrashedTraces(traces, store, tracer, (threadId) => threadTurns.of(threadId) !== undefined);
    }
  }

  /** Lets the turns continue that an earlier process left unfinished. Call it once, when clients can reach this process. */
  resume(): void {
    this.#threadTurns.resumed.start();
  }

  /** Default provider and model, and names of the enabled tools. */
  async describe(): Promise<{ readonly provider: string; readonly model: string; readonly tools: readonly string[] }> {
    const { delegate, provider: open } = this.#services;
    const { name: provider, model } = await open().catch((error: unknown) => {
      // Where another agent does the turns, our own may have no model.
      if (!delegate) throw error;
      return { name: delegate.name, model: delegate.name };
    });
    return { provider, model, tools: this.#tools.all().map(({ name }) => name) };
  }

  /** Models of the agent that does the turns. Returns a failure of the provider as a result, as the protocol defines it. */
  async models(): Promise<ModelListResult> {
    const { delegate, provider: open } = this.#services;
    if (delegate)
      return { success: true, models: delegate.offers().models.map((id) => ({ id, ownedBy: delegate.name })) };
    try {
      const provider = await open();
      return { success: true, models: [...(await provider.listModels(AbortSignal.timeout(modelListMs)))] };
    } catch (error) {
      const { code, message } = modelFailure(error, modelListMs);
      return { success: false, errorCode: code, errorMessage: message };
    }
  }

  /**
   * Leaves the turns to the next process of this workspace, each at the end of its present step or after `withinMs`. No turn starts any
   * more. Turns that need this process end as `close` ends them.
   */
  async suspend(options: SuspendOptions): Promise<void> {
    this.turns.stop();
    await this.#threadTurns.suspendAll(options);
    this.#suspended.resolve();
  }

  /** Resolves when turns are left to the next process: their `ended` never resolves. */
  get suspended(): Promise<void> {
    return this.#suspended.promise;
  }

  /** Interrupts every turn and resolves when all have ended; no turn starts any more. */
  async close(): Promise<void> {
    this.turns.close();
    await this.#threadTurns.running.idle();
    this.#registry.durable.journal.flush();
    this.#threadTurns.writePendingEnds();
  }

  #onTurnEnd(thread: StoredThread, turn: Turn): void {
    const { processes, onTurnEnd } = this.#services;
    void processes?.rest?.(thread.id);
    if (this.#registry.isUnlisted(thread.id)) return;
    onTurnEnd?.(thread, turn);
    this.turns.startNext(thread, turn);
  }
}
