import { type ReadonlySignal, signal } from '@preact/signals';
import { messageOf } from '../../../../lib/browser.ts';
import type {
  AgentChoice,
  AgentInUse,
  AgentMode,
  InputPart,
  ModelListResult,
  RaceAttempt,
  ThreadConfig,
  ThreadSummary,
} from '../../../../protocol/index.ts';
import type { App } from '../../../app/app.ts';
import { Conversation } from './conversation.ts';
import type { PromptCommand, ServerMessage } from './rpc.ts';

export type Model = Extract<ModelListResult, { readonly success: true }>['models'][number];

/** More files than are shown at once: files named in the conversation come first. */
const maxFiles = 16;

/** Name under which the page's threads are listed elsewhere. */
const identity = { channelName: 'page' };

/** The threads of the workspace and the conversation that is open; one per page, beyond the life of the view. */
export class ChatWorkspace {
  readonly #app: App;
  readonly #threads = signal<readonly ThreadSummary[] | null>(null);
  readonly #agent = signal<AgentInUse | null>(null);
  readonly #agents = signal<readonly AgentChoice[]>([]);
  readonly #modes = signal<readonly AgentMode[]>([]);
  readonly #models = signal<readonly Model[]>([]);
  readonly #commands = signal<readonly PromptCommand[]>([]);
  /** Threads that were begun here, with their first messages. */
  readonly #begun = new Map<string, readonly (readonly InputPart[])[]>();

  readonly #paneKeys = new Map<string, string>();
  #newPanes = 0;

  constructor(app: App) {
    this.#app = app;
  }

  /** The most recently active first, archived ones included; null before they were read. */
  get threads(): ReadonlySignal<readonly ThreadSummary[] | null> {
    return this.#threads;
  }

  /** Agent that does the turns; null before it was read. */
  get agent(): ReadonlySignal<AgentInUse | null> {
    return this.#agent;
  }

  /** Agents that a conversation may have; empty from an older server. */
  get agents(): ReadonlySignal<readonly AgentChoice[]> {
    return this.#agents;
  }

  /** Modes of an external agent. */
  get modes(): ReadonlySignal<readonly AgentMode[]> {
    return this.#modes;
  }

  get models(): ReadonlySignal<readonly Model[]> {
    return this.#models;
  }

  get commands(): ReadonlySignal<readonly PromptCommand[]> {
    return this.#commands;
  }

  /** Files of the workspace whose paths match the query, best first. */
  async files(conversation: Conversation, query: string): Promise<readonly string[]> {
    return (await conversation.call('file/search', { query, limit: maxFiles })).data;
  }

  /** Key of the pane of a thread; a thread that was begun here has the key of the new conversation. */
  paneKey(threadId: string | null): string {
    return threadId === null ? `new ${this.#newPanes}` : (this.#paneKeys.get(threadId) ?? threadId);
  }

  open(threadId: string | null): Conversation {
    const first = threadId === null ? [] : (this.#begun.get(threadId) ?? []);
    if (threadId !== null) this.#begun.delete(threadId);
    const conversation: Conversation = new Conversation(this.#app, threadId, first, {
      onOpen: (conversation) => void this.#read(conversation),
      onMessage: (message) => {
        this.#take(message);
        // Another agent names its models and commands in its turns.
        if (message.method === 'turn/completed' && this.#agent.peek()?.kind === 'acp')
          void this.#readAgent(conversation);
      },
    });
    return conversation;
  }

  /** Begins a thread with this message, and goes there. */
  async begin(conversation: Conversation, input: readonly InputPart[], config: ThreadConfig): Promise<void> {
    const threadId = await conversation.begin(input, { identity, config });
    this.#begun.set(threadId, [input]);
    this.#paneKeys.set(threadId, this.paneKey(null));
    this.#newPanes += 1;
    this.#app.router.go({ view: 'chat', path: [threadId] });
  }

  async #read(conversation: Conversation): Promise<void> {
    try {
      const { data } = await conversation.call('thread/list', { includeArchived: true });
      this.#threads.value = data;
    } catch (error) {
      this.#failed(conversation, error);
      return;
    }
    await this.#readAgent(conversation);
  }

  async #readAgent(conversation: Conversation): Promise<void> {
    try {
      const [models, commands, { agent, modes, agents }] = await Promise.all([
        conversation.call('model/list', {}),
        conversation.call('command/list', {}),
        conversation.call('agent/read', {}),
      ]);
      this.#models.value = models.success ? models.models : [];
      this.#commands.value = commands.data;
      this.#agent.value = agent;
      this.#modes.value = modes ?? [];
      this.#agents.value = agents ?? [];
    } catch (error) {
      this.#failed(conversation, error);
    }
  }

  /** A lost connection is shown by itself, and the next one reads again; one that was left needs no answer. */
  #failed(conversation: Conversation, error: unknown): void {
    if (conversation.isOpen && conversation.state.hasTag('live'))
      this.#app.toast({ text: messageOf(error), tone: 'danger' });
  }

  #take(message: ServerMessage): void {
    switch (message.method) {
      case 'thread/started':
        this.#put({ runtime: { running: false, waitingOnApproval: false }, ...message.params.thread });
        return;
      case 'thread/renamed':
        this.#change(message.params.threadId, { displayName: message.params.displayName });
        return;
      case 'thread/statusChanged':
        this.#change(message.params.threadId, { status: message.params.status });
        return;
      case 'thread/runtimeChanged':
        this.#noteRuntime(message.params);
        return;
      case 'thread/raceUpdated':
        this.#noteRace(message.params.threadId, message.params.race);
        return;
      case 'thread/deleted':
        this.#threads.value = this.#threads.peek()?.filter(({ id }) => id !== message.params.threadId) ?? null;
        return;
      default:
        return;
    }
  }

  #put(thread: ThreadSummary): void {
    const known = this.#threads.peek();
    // Threads of sub-agents belong to their parents.
    if (!known || thread.parentThreadId !== undefined) return;
    this.#threads.value = [thread, ...known.filter(({ id }) => id !== thread.id)];
  }

  #noteRuntime({
    threadId,
    runtime,
    firstInput,
  }: Pick<ThreadSummary, 'runtime' | 'firstInput'> & { threadId: string }) {
    this.#change(threadId, { runtime, ...(firstInput !== undefined && { firstInput }) });
  }

  #noteRace(threadId: string, race: RaceAttempt): void {
    const config = this.#threads.peek()?.find(({ id }) => id === threadId)?.config;
    this.#change(threadId, { config: { ...config, race } });
  }

  #change(threadId: string, changes: Partial<ThreadSummary>): void {
    const known = this.#threads.peek();
    if (known) this.#threads.value = known.map((each) => (each.id === threadId ? { ...each, ...changes } : each));
  }
}

const workspaces = new WeakMap<App, ChatWorkspace>();

export function chatOf(app: App): ChatWorkspace {
  const known = workspaces.get(app) ?? new ChatWorkspace(app);
  workspaces.set(app, known);
  return known;
}
