import { batch, effect, type ReadonlySignal, signal } from '@preact/signals';
import { type ActorRefFrom, createActor, type SnapshotFrom, waitFor } from 'xstate';
import { type ConversationDecision, conversationMachine } from '../../../../../machines/browser.ts';
import { count, messageOf } from '../../../../lib/browser.ts';
import { checkpointBefore, conversationDefaults, threadMarkdown, wholeThread } from '../../../../protocol/browser.ts';
import type {
  ApprovalRequest,
  Checkpoint,
  InputPart,
  QuestionAnswer,
  QueuedInput,
  RpcMethod,
  RpcParams,
  RpcResult,
  Thread,
  ThreadConfig,
} from '../../../../protocol/index.ts';
import type { App } from '../../../app/app.ts';
import { keepOutbox, keptOutbox, type Unsent } from './drafts.ts';
import { linkLogic } from './link.ts';
import { keyOfCall, type Row, type ToolRow } from './rows.ts';
import { conflictsOf, type Refusal, type Rpc, type ServerMessage } from './rpc.ts';
import { snapshotSignal } from './snapshot-signal.ts';
import { Transcript } from './transcript.ts';

type Snapshot = SnapshotFrom<typeof conversationMachine>;

/** Other parts of the page that follow a conversation. */
export interface Followers {
  readonly onOpen: (conversation: Conversation) => void;
  readonly onMessage: (message: ServerMessage) => void;
}

/** Result of an undo. */
export interface Restored {
  readonly restoreId: string;
  readonly files: number;
}

/** Effect of an undo on files. */
export interface Undone {
  readonly files: readonly string[];
  readonly checkpoint: Checkpoint | undefined;
}

/** Turns that are read at a time to find one. */
const searchedTurns = 500;

/** One open conversation: its visible state, and the actions of the user. */
export class Conversation {
  readonly threadId: string | null;
  readonly transcript = new Transcript();
  /** Cards that the person has opened or closed, by the key of their row. */
  readonly opened = new Map<string, boolean>();
  /** Row that a search has found; each one is shown when the object changes. */
  readonly found = signal<{ readonly key: string | null }>({ key: null });
  readonly #sent = signal(0);
  readonly #chosen = signal<string | null>(null);
  readonly #decidedHere = new Set<string>();
  /** Answers to questions, by id of the request: they may be long, so no event of the machine carries them. */
  readonly #answers = new Map<string, QuestionAnswer>();
  readonly #app: App;
  readonly #followers: Followers;
  readonly #actor: ActorRefFrom<typeof conversationMachine>;
  readonly #snapshot: ReadonlySignal<Snapshot>;
  readonly #thread = signal<Thread | null>(null);
  readonly #queue = signal<readonly QueuedInput[]>([]);
  readonly #approvals = signal<readonly ApprovalRequest[]>([]);
  readonly #unsent = signal<readonly Unsent[]>([]);
  readonly #hasFiles = signal(false);
  readonly #canUndo = signal(false);
  readonly #notice = signal<string | null>(null);
  readonly #restores = signal(0);
  readonly #restored = signal<Restored | null>(null);
  #rpc: Rpc | undefined;
  readonly #whenOpen = new Set<() => void>();
  #loadingOlder: Promise<void> | undefined;
  readonly #leave: () => void;

  constructor(app: App, threadId: string | null, first: readonly (readonly InputPart[])[], followers: Followers) {
    this.#app = app;
    this.threadId = threadId;
    this.#followers = followers;
    this.#unsent.value = [...keptOutbox(threadId), ...first.map((input) => ({ messageId: newId(), input }))];
    const stopKeeping = effect(() => keepOutbox(threadId, this.#unsent.value));
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
    const unfollow = this.#followWindow();
    this.#leave = () => {
      stopKeeping();
      unfollow();
    };
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

  /** Whether the server stores the changes of turns. */
  get hasFiles(): ReadonlySignal<boolean> {
    return this.#hasFiles;
  }

  /** Whether the server can restore files in an undo. */
  get canUndo(): ReadonlySignal<boolean> {
    return this.#canUndo;
  }

  /** Key of the call at the shown moment. */
  get chosen(): ReadonlySignal<string | null> {
    return this.#chosen;
  }

  /** Shows a pressed call in every lens. Has no effect while no lens is open. */
  choose({ key, turnId, callId, startedAt }: ToolRow): void {
    const { router } = this.#app;
    if (router.route.peek().query['lens'] === undefined) return;
    this.#chosen.value = key;
    router.set({ turn: turnId, call: callId, at: String(Date.parse(startedAt)) });
  }

  /** Shows the call in the address; null: no call. */
  async show(call: { readonly turn: string; readonly call: string } | null): Promise<void> {
    const key = call && keyOfCall(call.turn, call.call);
    if (key === this.#chosen.peek()) return;
    this.#chosen.value = key;
    if (call) await this.find(call.turn);
    if (key !== null && key === this.#chosen.peek()) this.found.value = { key };
  }

  /** Shows the end of the conversation. */
  showEnd(): void {
    this.#sent.value += 1;
  }

  /** Last report about the turn: a repetition, another model, its end. */
  get notice(): ReadonlySignal<string | null> {
    return this.#notice;
  }

  /** Counter of requests to scroll to the end, one for each sent message. */
  get sent(): ReadonlySignal<number> {
    return this.#sent;
  }

  /** Number of file restores since the page was opened, by any client. */
  get restores(): ReadonlySignal<number> {
    return this.#restores;
  }

  /** Files that the last undo in this tab restored. Cleared by a redo or the next message. */
  get restored(): ReadonlySignal<Restored | null> {
    return this.#restored;
  }

  close(): void {
    this.#leave();
    this.#actor.stop();
  }

  send(input: readonly InputPart[]): void {
    this.#sent.value += 1;
    this.#restored.value = null;
    const messageId = newId();
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

  decide(requestId: string, decision: ConversationDecision, answer?: QuestionAnswer): void {
    this.#decidedHere.add(requestId);
    if (answer) this.#answers.set(requestId, answer);
    this.#actor.send({ type: 'DECIDE', requestId, decision });
  }

  /** Answers the requests of a card, one after the other: the end of the turn decides those after `cancel`. */
  async decideAll(ids: readonly string[], decision: ConversationDecision, answer?: QuestionAnswer): Promise<void> {
    const [first, ...others] = ids;
    if (first !== undefined) this.decide(first, decision, answer);
    if (decision === 'cancel') return;
    for (const id of others) {
      await waitFor(
        this.#actor,
        (snapshot) =>
          snapshot.matches({ linked: { live: { approval: 'answerable' } } }) ||
          !snapshot.context.approvals.includes(id),
      ).catch(() => {
        // The conversation was closed: it takes no decision.
      });
      this.decide(id, decision);
    }
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
    const messageId = newId();
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
    const numTurns = this.#turnsFrom(turnId).length;
    const asked = { threadId: this.threadId, numTurns, restoreFiles: true, force };
    try {
      const { thread, restoreId, restoredTotal = 0 } = await this.call('thread/rollback', asked);
      this.#show(thread);
      this.#restored.value = restoreId === undefined ? null : { restoreId, files: restoredTotal };
      return null;
    } catch (error) {
      const refusal = conflictsOf(error);
      if (!refusal) this.#app.toast({ text: `Not undone: ${messageOf(error)}`, tone: 'danger' });
      return refusal;
    }
  }

  /** Takes the last undo of files back; the undone turns stay undone. */
  async bringBack({ restoreId }: Restored): Promise<void> {
    if (this.threadId === null) return;
    const { restoredTotal } = await this.call('checkpoint/restore', { threadId: this.threadId, turnId: restoreId });
    this.#restored.value = null;
    this.#notice.value = `${count(restoredTotal, 'file')} changed again`;
  }

  /** Files that an undo of this turn and the later ones restores, and the checkpoint, which names those that it does not cover. */
  async undoneBy(turnId: string): Promise<Undone | undefined> {
    const { threadId } = this;
    if (threadId === null) return undefined;
    const turns = this.#turnsFrom(turnId);
    const [{ data }, ...diffs] = await Promise.all([
      this.call('checkpoint/list', { threadId }),
      ...turns.map((turn) => this.call('turn/diff', { threadId, turnId: turn, format: 'summary' })),
    ]);
    const files = [...new Set(diffs.flatMap((diff) => diff.files.map(({ path }) => path)))].sort();
    return { files, checkpoint: checkpointBefore(data, turns) };
  }

  /** This turn and the later ones. */
  #turnsFrom(turnId: string): readonly string[] {
    const turns = [...new Set(this.transcript.rows.map((row) => row.turnId))];
    return turns.slice(turns.indexOf(turnId));
  }

  /** Reads the turns before the first shown one; a reading that is under way is awaited. */
  async loadOlder(turnLimit = this.#actor.getSnapshot().context.pageTurns): Promise<void> {
    const beforeTurnId = this.transcript.oldestTurnId;
    if (this.threadId === null || beforeTurnId === undefined || this.transcript.isAtBeginning) return;
    this.#loadingOlder ??= this.#readOlder({ threadId: this.threadId, turnLimit, beforeTurnId }).finally(() => {
      this.#loadingOlder = undefined;
    });
    await this.#loadingOlder;
  }

  async #readOlder(range: { threadId: string; turnLimit: number; beforeTurnId: string }): Promise<void> {
    try {
      const { thread } = await this.call('thread/read', { ...range, includeTurns: true });
      this.transcript.prepend(thread);
    } catch (error) {
      this.#app.toast({ text: `Older messages could not be read: ${messageOf(error)}`, tone: 'danger' });
    }
  }

  /** Index of the first such row; -1 when none is loaded. */
  indexOf(isWanted: (row: Row) => boolean): number {
    return this.transcript.rows.findIndex(isWanted);
  }

  /** Reads older turns until this one is loaded, or until the beginning. */
  async find(turnId: string): Promise<void> {
    while (this.indexOf((row) => row.turnId === turnId) < 0 && !this.transcript.isAtBeginning) {
      const before = this.transcript.oldestTurnId;
      await this.loadOlder(searchedTurns);
      // Nothing was read: the reason was shown.
      if (this.transcript.oldestTurnId === before) return;
    }
  }

  /** Reads all older turns. */
  async loadAll(): Promise<void> {
    await this.find('');
  }

  /** The whole conversation as Markdown. */
  async markdown(): Promise<string> {
    const { threadId } = this;
    if (threadId === null) return '';
    return threadMarkdown(await wholeThread(threadId, (range) => this.call('thread/read', range)));
  }

  #link() {
    return linkLogic({
      token: this.#app.token,
      version: this.#app.page.peek()?.version ?? '',
      onOpen: (rpc, { capabilities }) => {
        this.#rpc = rpc;
        const { checkpoints, changes } = capabilities.extensions;
        this.#canUndo.value = checkpoints !== undefined;
        this.#hasFiles.value = checkpoints !== undefined || changes !== undefined;
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
      answerOf: (requestId) => this.#answers.get(requestId),
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

  /** Whether the thread has a message, or its queue does. */
  #hasArrived(messageId: string): boolean {
    const said = this.transcript.rows.some((row) => row.kind === 'user' && row.messageId === messageId);
    return said || this.#queue.peek().some((queued) => queued.messageId === messageId);
  }

  #inputOf(messageId: string): readonly InputPart[] {
    return this.#unsent.peek().find((each) => each.messageId === messageId)?.input ?? [];
  }

  #forget(messageId: string): void {
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
      case 'thread/runtimeChanged':
        if (message.params.firstInput !== undefined) this.#change({ firstInput: message.params.firstInput });
        return;
      case 'thread/statusChanged':
        this.#change({ status: message.params.status });
        return;
      case 'question/asked':
      case 'item/approval/request':
        this.#approvals.value = [...this.#others(message.params.requestId), message.params];
        return;
      case 'question/resolved':
      case 'item/approval/resolved':
        this.#answers.delete(message.params.requestId);
        this.#approvals.value = this.#others(message.params.requestId);
        return;
      case 'system/event':
        if (message.params.kind === 'filesRestored') this.#restores.value += 1;
        if (this.#actor.getSnapshot().context.turnId !== null) this.#notice.value = message.params.message;
        return;
      case 'turn/started':
      case 'turn/cancelled':
        this.#notice.value = null;
        return;
      case 'turn/completed':
        this.#notice.value = 'Done';
        return;
      case 'turn/failed':
        this.#notice.value = `Failed: ${message.params.turn.error?.message ?? 'the turn ended early'}`;
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

/** Id of a message, unique among all tabs. */
const newId = (): string => crypto.getRandomValues(new Uint32Array(4)).join('-');
