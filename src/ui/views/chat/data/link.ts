import { fromCallback } from 'xstate';
import type { ConversationCommand, ConversationEvent, ConversationLinkInput } from '../../../../../machines/browser.ts';
import { messageOf } from '../../../../lib/browser.ts';
import type { InputPart, QuestionAnswer, RpcParams, RpcResult, Thread } from '../../../../protocol/index.ts';
import { JsonRpcError } from '../../../../rpc/browser.ts';
import { ApiError } from '../../../app/api.ts';
import { openRpc, type Rpc, rpcCodes, type ServerMessage } from './rpc.ts';

/** Effects of the link on the rest of the page. */
export interface LinkEffects {
  readonly token: () => Promise<string | null>;
  readonly version: string;
  /** The connection may be used. */
  readonly onOpen: (rpc: Rpc, server: RpcResult<'initialize'>) => void;
  /** Receives the current thread; later changes follow one by one. Returns the outbox messages that the thread contains. */
  readonly onRead: (thread: Thread, outbox: readonly string[]) => readonly string[];
  readonly onMessage: (message: ServerMessage) => void;
  readonly onClosed: () => void;
  readonly inputOf: (messageId: string) => readonly InputPart[];
  readonly onAccepted: (messageId: string, result: RpcResult<'turn/enqueue'>) => void;
  readonly onRefused: (messageId: string, reason: string) => void;
  /** Answer to a question; undefined: the request is an approval. */
  readonly answerOf: (requestId: string) => QuestionAnswer | undefined;
  readonly onFault: (what: string) => void;
}

/** The page shows whole calls, and the token usage of a turn at its end. */
const capabilities: RpcParams<'initialize'>['capabilities'] = {
  optOutNotificationMethods: ['item/toolCall/argumentsDelta', 'item/usage/delta'],
};
/** Interval of the events to the machine for received frames, of which there are many per second. */
const heardEveryMs = 1_000;
/** The server closed the connection because this tab did not read. */
const tooSlow = 1013;

/** Carries out the commands of the conversation machine over one connection. */
export const linkLogic = (effects: LinkEffects) =>
  fromCallback<ConversationCommand, ConversationLinkInput>(({ input, sendBack, receive }) => {
    const link = new Link(effects, input, sendBack);
    receive((command) => link.perform(command));
    void link.open();
    return () => link.close();
  });

class Link {
  readonly #effects: LinkEffects;
  readonly #input: ConversationLinkInput;
  readonly #report: (event: ConversationEvent) => void;
  #rpc: Rpc | undefined;
  #isOver = false;
  #heardAt = 0;
  /** Notifications that came before the reading that they belong to. */
  #early: ServerMessage[] | null = [];

  constructor(effects: LinkEffects, input: ConversationLinkInput, report: (event: ConversationEvent) => void) {
    this.#effects = effects;
    this.#input = input;
    this.#report = (event) => {
      if (!this.#isOver) report(event);
    };
  }

  async open(): Promise<void> {
    try {
      const token = await this.#effects.token();
      if (this.#isOver) return;
      this.#rpc = await openRpc({
        token,
        onMessage: (message) => this.#hear(message),
        onFrame: () => this.#heard(),
        onClosed: ({ code, reason }) => this.#lost(reason, code === tooSlow),
      });
      if (this.#isOver) return this.#rpc.close();
      await this.#introduce(this.#rpc);
    } catch (error) {
      this.#failed(error);
    }
  }

  close(): void {
    this.#isOver = true;
    this.#rpc?.close();
    this.#effects.onClosed();
  }

  perform(command: ConversationCommand): void {
    const rpc = this.#rpc;
    if (!rpc) return;
    switch (command.type) {
      case 'SEND':
        return void this.#send(rpc, command.messageId);
      case 'INTERRUPT':
        return void this.#interrupt(rpc, command.turnId);
      case 'DECIDE':
        return void this.#decide(rpc, command);
      case 'PROBE':
        // Only the frame of the answer matters: it proves that the connection is alive.
        rpc
          .call('approval/list', this.#input.threadId === null ? {} : { threadId: this.#input.threadId })
          .catch(() => {});
        return;
    }
  }

  async #introduce(rpc: Rpc): Promise<void> {
    const clientInfo = { name: 'page', title: 'the page', version: this.#effects.version };
    const server = await rpc.call('initialize', { clientInfo, capabilities });
    rpc.notify('initialized');
    this.#effects.onOpen(rpc, server);
    const { threadId, pageTurns, outbox } = this.#input;
    if (threadId === null) return this.#ready([], []);
    const [, { thread }, { data }, questions] = await Promise.all([
      rpc.call('thread/subscribe', { threadId, replayRecent: true }),
      rpc.call('thread/read', { threadId, includeTurns: true, turnLimit: pageTurns }),
      rpc.call('approval/list', { threadId }),
      // An agent server of an earlier version has no questions.
      rpc.call('question/list', { threadId }).catch(() => ({ data: [] })),
    ]);
    if (this.#isOver) return;
    const accepted = this.#effects.onRead(thread, outbox);
    const running = thread.turns?.findLast(({ completedAt }) => completedAt === undefined);
    this.#ready(
      [...data, ...questions.data].map(({ requestId }) => requestId),
      accepted,
      running?.id,
    );
  }

  #ready(approvals: readonly string[], accepted: readonly string[], turnId: string | null = null): void {
    this.#report({ type: 'LINK.READY', turnId, approvals, accepted });
    const early = this.#early ?? [];
    this.#early = null;
    for (const message of early) this.#hear(message);
  }

  #heard(): void {
    const now = performance.now();
    if (now - this.#heardAt < heardEveryMs) return;
    this.#heardAt = now;
    this.#report({ type: 'LINK.HEARD' });
  }

  #hear(message: ServerMessage): void {
    if (this.#isOver) return;
    if (this.#early !== null) {
      this.#early.push(message);
      return;
    }
    this.#effects.onMessage(message);
    const { threadId } = this.#input;
    if (threadId === null || !('threadId' in message.params) || message.params.threadId !== threadId) return;
    switch (message.method) {
      case 'turn/started':
        this.#report({ type: 'TURN.STARTED', turnId: message.params.turn.id });
        return;
      case 'turn/completed':
        this.#report({ type: 'TURN.ENDED', turnId: message.params.turn.id, end: 'completed' });
        return;
      case 'turn/failed':
        this.#report({ type: 'TURN.ENDED', turnId: message.params.turn.id, end: 'failed' });
        return;
      case 'turn/cancelled':
        this.#report({ type: 'TURN.ENDED', turnId: message.params.turn.id, end: 'cancelled' });
        return;
      case 'question/asked':
      case 'item/approval/request':
        this.#report({ type: 'APPROVAL.REQUESTED', requestId: message.params.requestId });
        return;
      case 'question/resolved':
      case 'item/approval/resolved':
        this.#report({ type: 'APPROVAL.RESOLVED', requestId: message.params.requestId });
        return;
      case 'thread/deleted':
        this.#report({ type: 'LINK.GONE' });
        return;
      default:
        return;
    }
  }

  async #send(rpc: Rpc, messageId: string): Promise<void> {
    const { threadId } = this.#input;
    if (threadId === null) return;
    try {
      const result = await rpc.call('turn/enqueue', {
        threadId,
        input: [...this.#effects.inputOf(messageId)],
        sender: 'page',
        messageId,
      });
      this.#effects.onAccepted(messageId, result);
      this.#report({ type: 'MESSAGE.ACCEPTED', messageId });
    } catch (error) {
      // Without an answer the next reading says whether it arrived.
      if (!(error instanceof JsonRpcError)) return;
      this.#effects.onRefused(messageId, error.message);
      this.#report({ type: 'MESSAGE.REFUSED', messageId });
    }
  }

  async #interrupt(rpc: Rpc, turnId: string): Promise<void> {
    const { threadId } = this.#input;
    if (threadId === null) return;
    try {
      await rpc.call('turn/interrupt', { threadId, turnId });
    } catch {
      // The turn has ended, or the connection is lost: another event reports either.
      this.#report({ type: 'INTERRUPT.FAILED' });
    }
  }

  async #decide(rpc: Rpc, { requestId, decision }: Extract<ConversationCommand, { type: 'DECIDE' }>): Promise<void> {
    try {
      const answer = this.#effects.answerOf(requestId);
      if (answer) await rpc.call('question/answer', { requestId, ...answer });
      else await rpc.call('approval/respond', { requestId, decision });
    } catch (error) {
      const decided: readonly number[] = [rpcCodes.approvalNotFound, rpcCodes.questionNotFound];
      const isDecided = error instanceof JsonRpcError && decided.includes(error.code);
      if (!isDecided) this.#effects.onFault(`The decision did not arrive: ${messageOf(error)}`);
      this.#report(isDecided ? { type: 'APPROVAL.RESOLVED', requestId } : { type: 'APPROVAL.FAILED', requestId });
    }
  }

  #failed(error: unknown): void {
    if (error instanceof JsonRpcError && error.code === rpcCodes.threadNotFound) {
      this.#report({ type: 'LINK.GONE' });
      return;
    }
    const isRefusal = error instanceof ApiError && (error.status === 401 || error.status === 403);
    if (isRefusal) {
      this.#report({ type: 'LINK.REFUSED', error: error.message });
      return;
    }
    this.#lost(messageOf(error), false);
  }

  #lost(reason: string, isTooMuch: boolean): void {
    const error = reason === '' ? 'The connection was lost.' : reason;
    this.#report({ type: 'LINK.LOST', error, isTooMuch });
    this.#rpc?.close();
  }
}
