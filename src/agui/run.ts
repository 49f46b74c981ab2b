import type { Listener, Runtime, ThreadEvent } from '../agent/index.ts';
import type { ApprovalRequest, Turn } from '../protocol/index.ts';
import type { RunInput } from './input.ts';
import type { InterruptAnswer } from './interrupts.ts';
import { RunEvents } from './run-events.ts';
import { RunStream } from './run-stream.ts';

export interface RunOptions {
  readonly runtime: Runtime;
  readonly threadId: string;
  readonly turnId: string;
  readonly input: RunInput;
  readonly answeredCalls: ReadonlySet<string>;
  /** Pending decisions in the turn and in its sub-agents. */
  readonly waiting: () => readonly ApprovalRequest[];
  /** The reader has left; the turn continues. */
  readonly onGone: () => void;
  /** Nothing of the turn is followed any more. */
  readonly onEnd: () => void;
}

/** One run: follows a turn to its end, or until it waits for a decision. */
export class Run {
  readonly stream: RunStream;
  readonly #options: RunOptions;
  readonly #events: RunEvents;
  readonly #hear: Listener = (event) => this.#take(event);
  #stage: 'new' | 'joining' | 'following' | 'ended' = 'new';
  /** Approvals that this run has sent. */
  readonly #asked = new Set<string>();
  #isAsking = false;

  constructor(options: RunOptions) {
    const { input, answeredCalls, onGone } = options;
    this.#options = options;
    this.stream = new RunStream(onGone);
    this.#events = new RunEvents({ input, answeredCalls, emit: (event) => this.stream.send(event) });
    this.#events.start();
  }

  /** Follows a turn that has not begun yet. */
  follow(begin: () => void): void {
    const { runtime, threadId } = this.#options;
    this.#stage = 'following';
    runtime.threads.subscribe(threadId, this.#hear);
    begin();
  }

  /** Joins a turn under way, and answers its questions. */
  join(answers: ReadonlyMap<string, InterruptAnswer>): void {
    const { runtime, threadId, waiting } = this.#options;
    this.#stage = 'joining';
    runtime.threads.subscribe(threadId, this.#hear).replay();
    if (this.#stage !== 'joining') return;
    this.#stage = 'following';
    for (const { requestId } of waiting()) this.#asked.add(requestId);
    for (const [requestId, answer] of answers) {
      if ('action' in answer) runtime.turns.answer(requestId, answer);
      else runtime.turns.respond(requestId, answer.decision);
    }
    this.#ask();
  }

  /** Sends a turn that is over. */
  recall(turn: Turn): void {
    this.#events.restate(turn);
    this.#finish(() => this.#events.end(turn));
  }

  #take(event: ThreadEvent): void {
    if (this.#stage === 'ended' || !this.#concerns(event)) return;
    switch (event.method) {
      case 'turn/started':
        // The current state contains all earlier events.
        if (this.#stage === 'joining') this.#events.restate(event.params.turn);
        return;
      case 'turn/completed':
      case 'turn/failed':
      case 'turn/cancelled':
        this.#over(event.params.turn);
        return;
      case 'item/approval/request':
      case 'question/asked':
        this.#asked.add(event.params.requestId);
        this.#ask();
    }
    if (this.#stage === 'following') this.#events.hear(event);
  }

  #over(turn: Turn): void {
    this.#finish(() => this.#events.end(turn));
  }

  /**
   * All that is asked for in one turn of the event loop becomes one interrupt; answers on their way count. The runtime may
   * know of more already: events of its unsent part are still to come.
   */
  #ask(): void {
    if (this.#isAsking) return;
    this.#isAsking = true;
    setImmediate(() => {
      this.#isAsking = false;
      if (this.#stage !== 'following') return;
      const waiting = this.#options.waiting().filter(({ requestId }) => this.#asked.has(requestId));
      if (waiting.length > 0) this.#finish(() => this.#events.interrupt(waiting));
    });
  }

  #finish(emitEnd: () => void): void {
    const { runtime, threadId, onEnd } = this.#options;
    emitEnd();
    this.#stage = 'ended';
    this.stream.end();
    runtime.feed.unsubscribe(threadId, this.#hear);
    onEnd();
  }

  /** Other events of the thread are of other turns. Approvals are of this one or of its sub-agents. */
  #concerns({ method, params }: ThreadEvent): boolean {
    if (method.startsWith('item/approval/') || method.startsWith('question/')) return true;
    const { turnId } = this.#options;
    if ('turnId' in params) return params.turnId === turnId;
    return 'turn' in params && params.turn.id === turnId;
  }
}
