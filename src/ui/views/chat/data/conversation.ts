import { batch, type ReadonlySignal, signal } from '@preact/signals';
import { type ActorRefFrom, createActor, type SnapshotFrom, waitFor } from 'xstate';
import { type ConversationDecision, conversationMachine } from '../../../../../machines/browser.ts';
import { messageOf } from '../../../../lib/browser.ts';
import { checkpointBefore, conversationDefaults } from '../../../../protocol/browser.ts';
import type {
  ApprovalRequest,
  Checkpoint,
  InputPart,
  QueuedInput,
  RpcMethod,
  RpcParams,
  RpcResult,
  Thread,
  ThreadConfig,
} from '../../../../protocol/index.ts';
import type { App } from '../../../app/app.ts';
import { linkLogic } from './link.ts';
import { conflictsOf, type Refusal, type Rpc, type ServerMessage } from './rpc.ts';
import { snapshotSignal } from './snapshot-signal.ts';
import { Transcript } from './transcript.ts';

type Snapshot = SnapshotFrom<typeof conversationMachine>;

/** A message that the server has not accepted yet. */
export interface Unsent {
  readonly messageId: string;
  readonly input: readonly InputPart[];
}

/** Other parts of the page that follow a conversation. */
export interface Followers {
  readonly onOpen: (conversation: Conversation) => void;
  readonly onMessage: (message: ServerMessage) => void;
}

/** Turns that are read at a time to find one. */
const searchedTurns = 500;

/** One open conversation: its visible state, and the actions of the user. */
export class Conversation {
  readonly threadId: string | null;
  readonly transcript = new Transcript();
  /** Cards that the person has opened or closed, by the key of their row. */
  readonly opened = new Map<string, boolean>();
  readonly #decidedHere = new Set<string>();
  readonly #app: App;
  readonly #followers: Followers;
  readonly #actor: ActorRefFrom<typeof conversationMachine>;
  readonly #snapshot: ReadonlySignal<Snapshot>;
  readonly #thread = signal<Thread | null>(null);
  readonly #queue = signal<readonly QueuedInput[]>([]);
  readonly #approvals = signal<readonly ApprovalRequest[]>([]);
  readonly #unsent = signal<readonly Unsent[]>([]);
  readonly #canUndo = signal(false);
  readonly #notice = signal<string | null>(null);
  readonly #restores = signal(0);
  /** Number of equal inputs in the thread when a message was written: a larger number later means that it has arrived. */
  readonly #countsBefore = new Map<string, number>();
  #rpc: Rpc | undefined;
  readonly #whenOpen = new Set<() => void>();
  #number = 0;
  #isLoadingOlder = false;
  readonly #leave: () => void;

  constructor(app: App, threadId: string | null, first: readonly (readonly InputPart[])[], followers: Followers) {
    this.#app = app;
    this.threadId = threadId;
    this.#followers = followers;
    this.#unsent.value = first.map((input) => ({ messageId: this.#nextId(), input }));
    for (const { messageId } of this.#unsent.peek()) this.#countsBefore.set(messageId, 0);
    const machine = conversationMachine.provide({ actors: { link: this.#link() } });
    this.#actor = createActor(machine, {
      input: {
        threadId,
        policy: conversationDefaults,
        seed: Math.floor(Math.random() * 2 ** 31),
        outbox: this.#unsent.peek().map(({ messageId }) => messageId),
      },
    });
    this.#snapshot = snapshotSignal(this.#actor);
    this.#leave = this.#followWindow();
    this.#actor.start();
  }

  /** State of the conversation. */
  get state(): Snapshot {
    return this.#snapshot.value;
  }

  /** Whether the conversation is open; false after `close`. */
  get isOpen(): boolean {
    return this.#actor.getSnapshot().status === 'active';
  }

  get thread(): ReadonlySignal<Thread | null> {
    return this.#thread;
  }

  /** Messages that wait for the end of the running turn. */
  get queue(): ReadonlySignal<readonly QueuedInput[]> {
    return this.#queue;
  }

  get approvals(): ReadonlySignal<readonly ApprovalRequest[]> {
    return this.#approvals;
  }

  get unsent(): ReadonlySignal<readonly Unsent[]> {
    return this.#unsent;
  }

  /** Whether the server can restore files in an undo. */
  get canUndo(): ReadonlySignal<boolean> {
    return this.#canUndo;
  }

  /** Last report of the runtime about the running turn: a repetition, another model. */
  get notice(): ReadonlySignal<string | null> {
    return this.#notice;
  }

  /** Number of file restores since the page was opened, by any client. */
  get restores(): ReadonlySignal<number> {
    return this.#restores;
  }

  close(): void {
    this.#leave();
    this.#actor.stop();
  }

  send(input: readonly InputPart[]): void {
    const messageId = this.#nextId();
    this.#countsBefore.set(messageId, this.#countOf(input));
    this.#unsent.value = [...this.#unsent.peek(), { messageId, input }];
    this.#actor.send({ type: 'SEND', messageId });
  }

  withdraw(messageId: string): void {
    this.#actor.send({ type: 'WITHDRAW', messageId });
    if (this.#actor.getSnapshot().context.outbox.includes(messageId)) return;
    this.#forget(messageId);
  }

  interrupt(): void {
    this.#actor.send({ type: 'INTERRUPT' });
  }

  decide(requestId: string, decision: ConversationDecision): void {
    this.#decidedHere.add(requestId);
    this.#actor.send({ type: 'DECIDE', requestId, decision });
  }

  /** Whether this tab has answered the approval. */
  isDecidedHere(requestId: string): boolean {
    return this.#decidedHere.has(requestId);
  }

  retry(): void {
    this.#actor.send({ type: 'RETRY' });
  }

  /** Calls a method; waits while the connection is being opened; rejects without a connection. */
  async call<M extends RpcMethod>(method: M, params: RpcParams<M>): Promise<RpcResult<M>> {
    if (!this.#rpc) await this.#settled();
    if (!this.#rpc) throw new Error('There is no connection to the server.');
    return this.#rpc.call(method, params);
  }

  /** Resolves when the connection is open or has failed, or when the conversation was closed, with which the actor ends. */
  async #settled(): Promise<void> {
    if (this.isOpen) await waitFor(this.#actor, (snapshot) => !snapshot.hasTag('connecting')).catch(() => {});
  }

  /** Begins a thread with this message as soon as there is a connection; until then the message is shown as unsent. */
  async begin(input: readonly InputPart[], params: RpcParams<'thread/start'>): Promise<string> {
    const messageId = this.#nextId();
    this.#unsent.value = [...this.#unsent.peek(), { messageId, input }];
    try {
      if (!this.#rpc) await new Promise<void>((resolve) => this.#whenOpen.add(resolve));
      return (await this.call('thread/start', params)).thread.id;
    } finally {
      this.#forget(messageId);
    }
  }

  /** Sends further input to the running turn. Resolves with false when no turn is running. */
  async steer(input: readonly InputPart[]): Promise<boolean> {
    const { turnId } = this.#actor.getSnapshot().context;
    if (this.threadId === null || turnId === null) return false;
    await this.call('turn/steer', { threadId: this.threadId, expectedTurnId: turnId, input: [...input] });
    return true;
  }

  async removeQueued({ id }: QueuedInput): Promise<void> {
    if (this.threadId === null) return;
    const { queuedInputs } = await this.call('turn/queue/remove', { threadId: this.threadId, queuedInputId: id });
    this.#queue.value = queuedInputs;
  }

  /** Sends a waiting message now: to the running turn, or as a new turn. */
  async sendNow(queued: QueuedInput): Promise<void> {
    const { turnId } = this.#actor.getSnapshot().context;
    if (this.threadId === null) return;
    if (turnId === null) {
      await this.removeQueued(queued);
      return this.send(queued.input);
    }
    const asked = { threadId: this.threadId, expectedTurnId: turnId, queuedInputId: queued.id };
    const { queuedInputs } = await this.call('turn/steer', asked);
    this.#queue.value = queuedInputs;
  }

  async configure(config: ThreadConfig): Promise<void> {
    const thread = this.#thread.peek();
    if (this.threadId === null || !thread) return;
    const changed = await this.call('thread/config/update', { threadId: this.threadId, config });
    this.#thread.value = { ...thread, config: changed.config };
  }

  /**
   * Undoes this turn and the later ones, with their files. Conflicting changes of others prevent this: resolves with
   * them, else with null. `force` overwrites them.
   */
  async undo(turnId: string, force: boolean): Promise<Refusal | null> {
    if (this.threadId === null) return null;
    const turns = [...new Set(this.transcript.rows.map((row) => row.turnId))];
    const numTurns = turns.length - turns.indexOf(turnId);
    const asked = { threadId: this.threadId, numTurns, restoreFiles: true, force };
    try {
      const { thread } = await this.call('thread/rollback', asked);
      this.#show(thread);
      return null;
    } catch (error) {
      const refusal = conflictsOf(error);
      if (!refusal) this.#app.toast({ text: `Not undone: ${messageOf(error)}`, tone: 'danger' });
      return refusal;
    }
  }

  /** Checkpoint that an undo of this turn and the later ones restores; files that it does not cover stay unchanged. */
  async checkpointBefore(turnId: string): Promise<Checkpoint | undefined> {
    if (this.threadId === null) return undefined;
    const { data } = await this.call('checkpoint/list', { threadId: this.threadId });
    const turns = [...new Set(this.transcript.rows.map((row) => row.turnId))];
    return checkpointBefore(data, turns.slice(turns.indexOf(turnId)));
  }

  /** Reads the turns before the first shown one. */
  async loadOlder(turnLimit = this.#actor.getSnapshot().context.pageTurns): Promise<void> {
    const beforeTurnId = this.transcript.oldestTurnId;
    if (this.threadId === null || beforeTurnId === undefined || this.transcript.isAtBeginning) return;
    if (this.#isLoadingOlder) return;
    this.#isLoadingOlder = true;
    try {
      const asked = { threadId: this.threadId, includeTurns: true, turnLimit, beforeTurnId };
      const { thread } = await this.call('thread/read', asked);
      this.transcript.prepend(thread);
    } catch (error) {
      this.#app.toast({ text: `Older messages could not be read: ${messageOf(error)}`, tone: 'danger' });
    } finally {
      this.#isLoadingOlder = false;
    }
  }

  /** Reads older turns until this one is loaded. Resolves with the index of its first row, or -1 if it is not found. */
  async find(turnId: string): Promise<number> {
    const index = () => this.transcript.rows.findIndex((row) => row.turnId === turnId);
    while (index() < 0 && !this.transcript.isAtBeginning) {
      const before = this.transcript.oldestTurnId;
      await this.loadOlder(searchedTurns);
      // Nothing was read: the reason was shown, or another request is running.
      if (this.transcript.oldestTurnId === before) break;
    }
    return index();
  }

  #link() {
    return linkLogic({
      token: this.#app.token,
      version: this.#app.page.peek()?.version ?? '',
      onOpen: (rpc, { capabilities }) => {
        this.#rpc = rpc;
        this.#canUndo.value = capabilities.extensions['checkpoints'] !== undefined;
        this.#followers.onOpen(this);
        for (const resolve of this.#whenOpen) resolve();
        this.#whenOpen.clear();
      },
      onRead: (thread, outbox) => this.#read(thread, outbox),
      onMessage: (message) => this.#take(message),
      onClosed: () => {
        this.#rpc = undefined;
      },
      inputOf: (messageId) => this.#inputOf(messageId),
      onAccepted: (messageId, { queuedInputs }) => {
        this.#queue.value = queuedInputs;
        this.#forget(messageId);
      },
      onRefused: (messageId, reason) => {
        this.#app.toast({ text: `Not sent: ${reason}`, tone: 'danger', ms: 12_000 });
        this.onReturned?.(this.#inputOf(messageId));
        this.#forget(messageId);
      },
      onFault: (text) => void this.#app.toast({ text, tone: 'danger' }),
    });
  }

  /** Gets the input of a message that the server refused. */
  onReturned: ((input: readonly InputPart[]) => void) | undefined;

  #read(thread: Thread, outbox: readonly string[]): readonly string[] {
    this.#show(thread);
    this.#approvals.value = [];
    const accepted = outbox.filter((messageId) => this.#hasArrived(messageId));
    for (const messageId of accepted) this.#forget(messageId);
    return accepted;
  }

  #show(thread: Thread): void {
    batch(() => {
      this.#thread.value = { ...thread, turns: [] };
      this.#queue.value = thread.queuedInputs ?? [];
      this.transcript.replace(thread);
    });
  }

  /** A message without an answer has arrived when the thread contains its input once more than before. */
  #hasArrived(messageId: string): boolean {
    const before = this.#countsBefore.get(messageId);
    return before !== undefined && this.#countOf(this.#inputOf(messageId)) > before;
  }

  #countOf(input: readonly InputPart[]): number {
    const wanted = textOf(input);
    const said = this.transcript.rows.flatMap((row) => (row.kind === 'user' ? [row.input] : []));
    const waiting = this.#queue.peek().map((queued) => queued.input);
    return [...said, ...waiting].filter((each) => textOf(each) === wanted).length;
  }

  #inputOf(messageId: string): readonly InputPart[] {
    return this.#unsent.peek().find((each) => each.messageId === messageId)?.input ?? [];
  }

  #forget(messageId: string): void {
    this.#countsBefore.delete(messageId);
    this.#unsent.value = this.#unsent.peek().filter((each) => each.messageId !== messageId);
  }

  #take(message: ServerMessage): void {
    this.#followers.onMessage(message);
    const { params } = message;
    if (!('threadId' in params) || params.threadId !== this.threadId) return;
    this.transcript.take(message);
    switch (message.method) {
      case 'thread/queue/updated':
        this.#queue.value = message.params.queuedInputs;
        return;
      case 'thread/renamed':
        this.#change({ displayName: message.params.displayName });
        return;
      case 'thread/statusChanged':
        this.#change({ status: message.params.status });
        return;
      case 'item/approval/request':
        this.#approvals.value = [...this.#others(message.params.requestId), message.params];
        return;
      case 'item/approval/resolved':
        this.#approvals.value = this.#others(message.params.requestId);
        return;
      case 'system/event':
        if (message.params.kind === 'filesRestored') this.#restores.value += 1;
        this.#notice.value = message.params.message;
        return;
      case 'turn/started':
      case 'turn/completed':
      case 'turn/failed':
      case 'turn/cancelled':
        this.#notice.value = null;
        return;
    }
  }

  #others(requestId: string): readonly ApprovalRequest[] {
    return this.#approvals.peek().filter((each) => each.requestId !== requestId);
  }

  #change(changes: Partial<Thread>): void {
    const thread = this.#thread.peek();
    if (thread) this.#thread.value = { ...thread, ...changes };
  }

  #nextId(): string {
    this.#number += 1;
    return `message-${this.#number}`;
  }

  /** A tab that comes back asks at once, because a browser does not run the timers of a hidden one. */
  #followWindow(): () => void {
    const wake = () => {
      if (document.visibilityState === 'visible') this.#actor.send({ type: 'WAKE' });
    };
    document.addEventListener('visibilitychange', wake);
    addEventListener('online', wake);
    return () => {
      document.removeEventListener('visibilitychange', wake);
      removeEventListener('online', wake);
    };
  }
}

/** Text by which two inputs are compared: the server adds fields to a sent input. */
const textOf = (input: readonly InputPart[]): string =>
  input
    .map((part) => {
      if (part.type === 'text') return part.text;
      if (part.type === 'commandRef' || part.type === 'skillRef') return `/${part.name}`;
      return part.type === 'fileRef' ? part.path : 'image';
    })
    .join('\n');
