import { createHash } from 'node:crypto';
import { AgentError, type Runtime, type TurnOptions } from '../agent/index.ts';
import { HttpError } from '../http/index.ts';
import {
  type ApprovalDecision,
  type ApprovalRequest,
  defaults,
  isRunningStatus,
  type Thread,
  type Turn,
} from '../protocol/index.ts';
import { readConversation, type Said } from './conversation.ts';
import { refused } from './errors.ts';
import type { RunInput } from './input.ts';
import { instructionsOf } from './instructions.ts';
import { decisionOf, type InterruptAnswer, questionAnswerOf } from './interrupts.ts';
import { Run } from './run.ts';
import type { RunStream } from './run-stream.ts';

export interface AguiServiceOptions {
  readonly runtime: Runtime;
  /** How long a turn without a reader continues. Milliseconds. */
  readonly graceMs?: number | undefined;
  /** How long a turn of an earlier process continues without a reader, at least. Milliseconds. */
  readonly resumedGraceMs?: number | undefined;
}

const channelName = 'agui';
/** The first run brought a foreign history: the client sends it again with every run. */
const withPast = 'agui:past';
const threadPrefix = 'agui_';

/** Maps a client's name to its thread, always to the same one: a client knows its own names only. */
export function threadIdOf(clientThreadId: string): string {
  return threadPrefix + createHash('sha256').update(clientThreadId).digest('hex').slice(0, 32);
}

interface KnownThread {
  readonly thread: Thread;
  readonly last: Turn | undefined;
}

/** Runs onto threads and turns. */
export class AguiService {
  readonly #runtime: Runtime;
  readonly #graceMs: number;
  /** Runs that are being read, by thread. */
  readonly #read = new Map<string, Set<Run>>();
  readonly #graces = new Map<string, NodeJS.Timeout>();

  constructor(options: AguiServiceOptions) {
    const { disconnectGraceMs } = defaults.agui;
    const { runtime, graceMs = disconnectGraceMs, resumedGraceMs = defaults.agui.resumedGraceMs } = options;
    this.#runtime = runtime;
    this.#graceMs = graceMs;
    for (const { threadId, turnId } of runtime.turns.registered) {
      // A turn that waits for an approval has no reader.
      const isMeant = threadId.startsWith(threadPrefix) && runtime.turns.approvals(threadId).length === 0;
      if (isMeant) this.#endAfter(threadId, turnId, Math.max(graceMs, resumedGraceMs));
    }
  }

  /**
   * Begins, joins or recalls the turn that a run is about.
   *
   * @throws HttpError when nothing can come of it; nothing has changed then
   */
  run(input: RunInput): RunStream {
    this.#requireOpen();
    try {
      const threadId = threadIdOf(input.threadId);
      const found = this.#find(threadId);
      const said = readConversation(input.messages, found?.last);
      if (found?.last && isRunning(found.last)) return this.#join(threadId, found.last, input, said);
      // The client lost the connection before it heard of the answer.
      const isAnswered = said.isRepeat && found?.last?.status === 'completed';
      if (!isAnswered && (said.input.length > 0 || said.results.length > 0))
        return this.#begin(threadId, found, input, said);
      if (found?.last) return this.#recall(threadId, found.last, input);
      throw new HttpError(400, 'invalidRequest', 'messages: there is nothing new to answer.');
    } catch (error) {
      throw refused(error);
    }
  }

  /** Pending decisions in threads of this protocol and in their sub-agents. @throws HttpError 503 */
  approvals(): ApprovalRequest[] {
    this.#requireOpen();
    return this.#runtime.turns
      .approvals()
      .filter(({ threadId, question }) => !question && this.#rootOf(threadId).startsWith(threadPrefix));
  }

  /** @throws HttpError 404, 503 */
  decide(requestId: string, decision: ApprovalDecision): void {
    try {
      if (!this.approvals().some((request) => request.requestId === requestId)) {
        throw new AgentError('approvalNotFound', { requestId });
      }
      this.#runtime.turns.respond(requestId, decision);
    } catch (error) {
      throw refused(error);
    }
  }

  /** The server still answers while its database closes. @throws HttpError 503 */
  #requireOpen(): void {
    if (!this.#runtime.turns.isClosing) return;
    throw new HttpError(503, 'stopping', 'The agent server is shutting down.', {}, [['retry-after', '1']]);
  }

  #waiting(threadId: string): ApprovalRequest[] {
    return this.#runtime.turns.approvals().filter((request) => this.#rootOf(request.threadId) === threadId);
  }

  /** The thread that a sub-agent works for in the end. */
  #rootOf(threadId: string): string {
    const parentId = this.#runtime.threads.read(threadId, { includeTurns: false }).parentThreadId;
    return parentId === undefined ? threadId : this.#rootOf(parentId);
  }

  #find(threadId: string): KnownThread | undefined {
    try {
      const thread = this.#runtime.threads.read(threadId, { includeTurns: true, turnLimit: 1 });
      return { thread, last: thread.turns?.at(-1) };
    } catch (error) {
      if (error instanceof AgentError && error.reason === 'threadNotFound') return undefined;
      throw error;
    }
  }

  #begin(threadId: string, found: KnownThread | undefined, input: RunInput, said: Said): RunStream {
    const hasPast = found ? found.thread.identity?.channelContext === withPast : said.history.length > 0;
    const undo = found ? undefined : this.#create(threadId, hasPast);
    const options: TurnOptions = {
      ...(hasPast && { history: said.history }),
      instructions: instructionsOf(input),
      clientTools: input.tools.map(({ name, description, parameters }) => ({
        name,
        description: description ?? '',
        inputSchema: parameters ?? { type: 'object', properties: {} },
      })),
      ...(said.results.length > 0 && { toolResults: said.results }),
      sender: channelName,
    };
    try {
      const { turn, begin } = this.#runtime.turns.start(threadId, said.input, undefined, options);
      const answered = new Set(said.results.map(({ callId }) => callId));
      const run = this.#open(threadId, turn.id, input, answered);
      run.follow(begin);
      return run.stream;
    } catch (error) {
      undo?.();
      throw error;
    }
  }

  /** Returns a function that undoes this. */
  #create(threadId: string, hasPast: boolean): () => void {
    const channelContext = hasPast ? withPast : channelName;
    const { announce } = this.#runtime.threads.start({
      threadId,
      identity: { channelName, userId: 'local', channelContext },
    });
    announce();
    // The thread is empty and unknown to all clients: should it stay, a list has one line too many.
    return () =>
      void this.#runtime.threads.delete(threadId).then(
        (notify) => notify(),
        () => undefined,
      );
  }

  #join(threadId: string, turn: Turn, input: RunInput, { input: more, isRepeat }: Said): RunStream {
    const isNew = more.length > 0 && !isRepeat;
    if (isNew && input.resume.length === 0) throw new AgentError('turnInProgress', { threadId: input.threadId });
    const waiting = new Map(this.#waiting(threadId).map((request) => [request.requestId, request]));
    const answers = new Map<string, InterruptAnswer>();
    for (const resume of input.resume) {
      const request = waiting.get(resume.interruptId);
      const { question } = request ?? {};
      const answer = question ? questionAnswerOf(resume, question) : { decision: decisionOf(resume, isNew) };
      // Another client decided meanwhile: the first answer counts, and this client receives the outcome.
      if (request) answers.set(resume.interruptId, answer);
    }
    if (isNew) this.#runtime.turns.steer(threadId, turn.id, { input: more });
    const run = this.#open(threadId, turn.id, input, new Set());
    run.join(answers);
    return run.stream;
  }

  #recall(threadId: string, turn: Turn, input: RunInput): RunStream {
    const run = this.#open(threadId, turn.id, input, new Set());
    run.recall(turn);
    return run.stream;
  }

  #open(threadId: string, turnId: string, input: RunInput, answeredCalls: ReadonlySet<string>): Run {
    this.#stopGrace(threadId);
    const run: Run = new Run({
      runtime: this.#runtime,
      threadId,
      turnId,
      input,
      answeredCalls,
      waiting: () => this.#waiting(threadId),
      onGone: () => this.#left(run, threadId, turnId),
      onEnd: () => {
        if (this.#isUnread(run, threadId)) this.#stopGrace(threadId);
      },
    });
    const runs = this.#read.get(threadId) ?? new Set();
    this.#read.set(threadId, runs.add(run));
    return run;
  }

  /** A reader has gone. When it was the last one, the turn is ended after the grace. */
  #left(run: Run, threadId: string, turnId: string): void {
    if (!this.#isUnread(run, threadId)) return;
    this.#endAfter(threadId, turnId, this.#graceMs);
  }

  #endAfter(threadId: string, turnId: string, graceMs: number): void {
    const timer = setTimeout(() => {
      this.#graces.delete(threadId);
      this.#interrupt(threadId, turnId);
    }, graceMs);
    this.#graces.set(threadId, timer.unref());
  }

  /** Whether the thread has no reader besides `run`. */
  #isUnread(run: Run, threadId: string): boolean {
    const runs = this.#read.get(threadId);
    runs?.delete(run);
    if (runs && runs.size > 0) return false;
    this.#read.delete(threadId);
    return true;
  }

  #stopGrace(threadId: string): void {
    clearTimeout(this.#graces.get(threadId));
    this.#graces.delete(threadId);
  }

  #interrupt(threadId: string, turnId: string): void {
    try {
      this.#runtime.turns.interrupt(threadId, turnId)();
    } catch (error) {
      // The turn ended just now, or its thread was deleted.
      if (!(error instanceof AgentError)) throw error;
    }
  }
}

const isRunning = ({ status }: Turn): boolean => isRunningStatus(status);
