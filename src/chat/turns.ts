import {
  AgentError,
  type Listener,
  type ResponseStore,
  type RunningTurn,
  type Runtime,
  StorageError,
} from '../agent/index.ts';
import type { Config } from '../config/index.ts';
import { HttpError } from '../http/index.ts';
import { Limit } from '../lib/index.ts';
import type { Logger } from '../log/index.ts';
import { type ApprovalRequest, defaults } from '../protocol/index.ts';
import { type AnswerShape, ChatTurn, type ChatTurnOptions, givenUp } from './chat-turn.ts';
import { chatError, explained } from './errors.ts';
import type { ChatTiming } from './options.ts';
import type { Plan } from './plan.ts';
import { type ResponseHead, ResponseLog, type ResponseState, restarted } from './responses/log.ts';
import { type OpenThread, Threads } from './threads.ts';

export interface ChatTurnsOptions {
  readonly runtime: Runtime;
  readonly responses: ResponseStore;
  readonly api: Config['Api'];
  readonly logger: Logger;
  readonly timing: Pick<ChatTiming, 'resumedGraceMs'>;
}

export interface ChosenModels {
  readonly used: string;
  readonly asked: string | undefined;
}

export interface BeginOptions {
  /** The caller has a key with which it can join the turn again. */
  readonly isNamed: boolean;
  /** Called with the turn before it starts. */
  readonly onMade: (turn: ChatTurn) => void;
}

const nothing = () => {};

/** Turns of the chat API: starts them up to the limit, and ends those that lost their caller. */
export class ChatTurns {
  readonly #options: ChatTurnsOptions;
  readonly #threads: Threads;
  /** Serves the requests of a session one after the other. */
  readonly #sessions = new Limit();
  readonly #running = new Set<ChatTurn>();
  readonly #graces = new Map<ChatTurn, NodeJS.Timeout>();

  constructor(options: ChatTurnsOptions) {
    this.#options = options;
    this.#threads = new Threads(options.runtime, options.api, (error) => options.logger.bug(error));
  }

  /** Pending approvals of these turns. */
  get approvals(): ApprovalRequest[] {
    return [...this.#running].flatMap((turn) => [...turn.approvals.values()]);
  }

  /** Session of an approval; undefined for an unknown approval or a turn without a session. */
  sessionOf(approvalId: string): string | undefined {
    for (const { approvals, sessionId } of this.#running) if (approvals.has(approvalId)) return sessionId;
    return undefined;
  }

  /**
   * Starts a turn. A later failure is its outcome.
   *
   * @throws HttpError 429 above the limit of parallel turns
   */
  begin(plan: Plan, models: ChosenModels, { isNamed, onMade }: BeginOptions): ChatTurn {
    const { MaxConcurrentTurns, ShowToolActivity } = this.#options.api;
    if (this.#running.size >= MaxConcurrentTurns) {
      throw chatError('concurrencyLimit', `${MaxConcurrentTurns} turns run already.`, {
        retryAfterMs: defaults.chat.retryAfterMs,
      });
    }
    const response = plan.response?.log;
    const options: ChatTurnOptions = {
      ...(response && { identity: response.state.head, response }),
      model: models.used,
      sessionId: plan.sessionId,
      showsActivity: plan.showsActivity ?? ShowToolActivity,
      onlyFinalText: plan.onlyFinalText,
      callerTools: plan.options.clientTools?.map(({ name }) => name) ?? [],
      onDeserted: (deserted) => this.#deserted(deserted),
    };
    const turn = new ChatTurn(options);
    turn.isResumable ||= isNamed;
    if (response?.state.head.isStored) this.#add(response.state, plan.sessionId ?? '');
    this.#saveResponse(turn);
    onMade(turn);
    this.#running.add(turn);
    void this.#run(turn, plan, models.asked).finally(() => this.#forget(turn));
    return turn;
  }

  /**
   * Makes the turn of a request to an earlier process again, under way or over.
   *
   * @param onMade called before its end
   * @returns false: the turn is not stored
   */
  resume(threadId: string, turnId: string, shape: AnswerShape, onMade: (turn: ChatTurn) => void): boolean {
    const stored = this.#threads.findTurn(threadId, turnId);
    if (!stored) return false;
    const response = shape.response && this.#restartedLog(shape.response);
    const turn = new ChatTurn({ ...shape, response, onDeserted: (deserted) => this.#deserted(deserted) });
    turn.isResumable = true;
    this.#saveResponse(turn);
    onMade(turn);
    if (turn.sessionId === undefined) void turn.ended.then(() => this.#close(threadId));
    if (this.#options.runtime.turns.running(threadId)?.turnId === turnId) this.#follow(turn, threadId, turnId);
    else turn.join(stored);
    return true;
  }

  /** Follows a turn that continues. Its session serves no other request before its end. */
  #follow(turn: ChatTurn, threadId: string, turnId: string): void {
    const { runtime, api, timing } = this.#options;
    const hear: Listener = (event) => {
      // The next turn of the thread may begin at once.
      if (turn.outcome) return;
      if (event.method === 'turn/started') turn.join(event.params.turn);
      else turn.listener(event);
    };
    this.#running.add(turn);
    if (turn.sessionId !== undefined) void this.#sessions.run(turn.sessionId, () => turn.ended);
    runtime.threads.subscribe(threadId, hear).replay();
    turn.stopBy(() => this.#interrupt(threadId, turnId));
    if (api.OnDisconnect === 'cancel' && !isBackground(turn)) {
      this.#endAfter(turn, Math.max(api.DisconnectGraceMs, timing.resumedGraceMs));
    }
    void turn.ended.then(() => {
      runtime.feed.unsubscribe(threadId, hear);
      this.#forget(turn);
    });
  }

  /** A turn under way, by the id of its answer. */
  find(id: string): ChatTurn | undefined {
    for (const turn of this.#running) if (turn.id === id) return turn;
    return undefined;
  }

  /** @throws HttpError 500 when the disk refuses it */
  #add(state: ResponseState, threadId: string): void {
    try {
      this.#options.responses.add({ id: state.head.id, threadId, json: JSON.stringify(state) });
    } catch (error) {
      if (!(error instanceof StorageError)) throw error;
      throw chatError('storageFailed', `The response cannot be stored: ${error.message}.`);
    }
  }

  /** The response of an earlier process, to be written again. */
  #restartedLog(head: ResponseHead): ResponseLog {
    const { responses } = this.#options;
    const stored = responses.get(head.id);
    const log = new ResponseLog(restarted(stored ? (JSON.parse(stored.json) as ResponseState).head : head));
    if (stored) responses.put(head.id, JSON.stringify(log.state), false);
    return log;
  }

  #saveResponse(turn: ChatTurn): void {
    const { responses, logger } = this.#options;
    const state = turn.response?.state;
    if (!state?.head.isStored) return;
    const { id } = state.head;
    turn.saveBy({
      start: (_threadId, turnId) => responses.begin(id, turnId),
      end: () => {
        try {
          responses.put(id, JSON.stringify(state), true);
        } catch (error) {
          if (!(error instanceof StorageError)) throw error;
          logger.warn('could not save a response; it is lost when the server ends', { id, error });
        }
      },
    });
  }

  /** Cancels the grace period: a caller has returned. */
  keep(turn: ChatTurn): void {
    clearTimeout(this.#graces.get(turn));
    this.#graces.delete(turn);
  }

  #forget(turn: ChatTurn): void {
    this.keep(turn);
    this.#running.delete(turn);
  }

  /** Never rejects. */
  async #run(turn: ChatTurn, plan: Plan, model: string | undefined): Promise<void> {
    try {
      const leave = await this.#enter(turn);
      try {
        if (!turn.outcome) await this.#converse(turn, plan, model);
      } finally {
        leave();
      }
    } catch (error) {
      turn.fail(this.#responseTo(error));
    }
  }

  /** Waits for the session to be free. @throws HttpError 429 when too many requests wait */
  async #enter(turn: ChatTurn): Promise<() => void> {
    const { sessionId } = turn;
    if (sessionId === undefined) return nothing;
    if (this.#sessions.waiting(sessionId) >= defaults.chat.waitingPerSession) {
      throw chatError(
        'sessionBusy',
        `${defaults.chat.waitingPerSession} requests wait for session ${sessionId} already.`,
      );
    }
    const waiting = new AbortController();
    turn.stopBy(() => waiting.abort(givenUp()));
    return this.#sessions.enter(sessionId, waiting.signal);
  }

  async #converse(turn: ChatTurn, plan: Plan, model: string | undefined): Promise<void> {
    const thread = this.#threads.open(plan, model, turn.isResumable);
    try {
      await this.#start(turn, thread);
      await turn.ended;
    } finally {
      if (thread.isSingle) await this.#close(thread.threadId);
    }
  }

  async #close(threadId: string): Promise<void> {
    await this.#threads.close(threadId).catch((error: unknown) => this.#options.logger.bug(error));
  }

  /** Starts the turn once the thread is free: other interfaces may use the thread of a session, too. */
  async #start(turn: ChatTurn, { threadId, input, options }: OpenThread): Promise<void> {
    const { runtime } = this.#options;
    const alsoStore = (turnId: string) => turn.saveStart(threadId, turnId);
    for (;;) {
      // Throws for a turn that was stopped during the wait.
      turn.stopBy(nothing);
      try {
        const started = runtime.turns.start(threadId, input, turn.listener, {
          ...options,
          alsoStore,
          waitsForQuota: false,
        });
        turn.stopBy(() => this.#interrupt(threadId, started.turn.id));
        started.begin();
        return;
      } catch (error) {
        if (!(error instanceof AgentError && error.reason === 'turnInProgress')) throw error;
      }
      await this.#endOf(runtime.turns.running(threadId), turn);
    }
  }

  /** Waits for the end of another turn. Rejects when `turn` is stopped before. */
  async #endOf(running: RunningTurn | undefined, turn: ChatTurn): Promise<void> {
    const stopped = Promise.withResolvers<never>();
    turn.stopBy(() => stopped.reject(givenUp()));
    await Promise.race([running?.ended, stopped.promise]);
  }

  #interrupt(threadId: string, turnId: string): void {
    try {
      this.#options.runtime.turns.interrupt(threadId, turnId)();
    } catch (error) {
      // The turn has ended.
      if (!(error instanceof AgentError)) throw error;
    }
  }

  /** Applies `Api.OnDisconnect` to a turn that is not in the background: finishes the turn, or ends it after the grace period; at once when no caller can return. */
  #deserted(turn: ChatTurn): void {
    const { OnDisconnect, DisconnectGraceMs } = this.#options.api;
    if (OnDisconnect === 'detach' || isBackground(turn)) return;
    if (!turn.isResumable || DisconnectGraceMs === 0) {
      turn.stop();
      return;
    }
    this.#endAfter(turn, DisconnectGraceMs);
  }

  #endAfter(turn: ChatTurn, graceMs: number): void {
    this.#graces.set(turn, setTimeout(() => turn.stop(), graceMs).unref());
  }

  #responseTo(error: unknown): HttpError {
    const known = explained(error);
    if (known instanceof HttpError) return known;
    const errorId = this.#options.logger.bug(error);
    return chatError('internalError', `Internal error ${errorId}.`);
  }
}

const isBackground = ({ response }: ChatTurn): boolean => response?.state.head.isBackground === true;
