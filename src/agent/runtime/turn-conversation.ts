import type { InputPart, Item, Turn } from '../../protocol/index.ts';
import {
  conversationOf,
  cutOf,
  pruned,
  requestsOf,
  reserveOf,
  sizeOfItems,
  summarise,
  TokenCount,
} from '../context/index.ts';
import { contentOf, imagePathsIn, imagePathsOf, messagesOf } from '../history.ts';
import type {
  ContentPart,
  ModelFacts,
  ModelMessage,
  ModelRequest,
  ModelState,
  ModelTool,
  ModelToolCall,
  ModelUsage,
  ToolChoice,
} from '../model.ts';
import type { ModelUse } from '../model-call.ts';
import type { Compaction } from '../thread-store.ts';
import type { Tool } from '../tool.ts';
import type { CallResult } from './call-runner.ts';
import type { ThreadEvent } from './feed.ts';
import { systemPrompt } from './system-prompt.ts';
import type { TurnHost } from './turn-host.ts';
import type { TurnItems } from './turn-items.ts';
import type { TurnOptions } from './types.ts';

export interface TurnConversationOptions {
  readonly host: TurnHost;
  readonly turnId: string;
  readonly options: TurnOptions;
  readonly items: TurnItems;
  /** Publishes an event of the turn after its earlier writes. */
  readonly publish: (event: ThreadEvent) => void;
  /** Called with the usage of a summary. */
  readonly onSummaryUsed: (use: ModelUse) => void;
}

/** Window of a model of which nothing is known. */
const usualWindow = 128_000;
/** Part of the window that stays unchanged in a compaction. */
const keptShare = 0.25;
/** The same once the provider has found the conversation too long, and as a part of that conversation. */
const leastKeptShare = 0.1;
const leastKeptPart = 0.25;
/** Room for older requests of the user, word for word. */
const olderRequestTokens = 20_000;
const olderRequestShare = 0.15;
/** Part of the window that a summary may read. */
const transcriptShare = 0.4;
/** Window to assume after a refusal, as a part of what was refused, and the least one: no useful model has less. */
const shrink = 0.8;
const leastWindow = 4_096;
/** Least part of the window that pruning must win. */
const pruneShare = 0.1;
/** A compaction that wins less is not tried again until the conversation has grown by `regrowShare`. */
const leastWin = 0.05;
const regrowShare = 0.1;

/** Conversation of one turn and its tools: collected at the start, then extended, and made to fit the model's window. */
export class TurnConversation {
  readonly #options: TurnConversationOptions;
  readonly #host: TurnHost;
  readonly #client: ReadonlyMap<string, ModelTool>;
  readonly #count = new TokenCount();
  #server: ReadonlyMap<string, Tool> = new Map();
  #messages: ModelMessage[] = [];
  #past: Past | undefined;
  /** States of answers of this turn by their last items. */
  readonly #states = new Map<string, ModelState>();
  /** Images of messages by path, each read once in a turn. */
  readonly #images = new Map<string, ContentPart>();
  readonly #imagesTried = new Set<string>();
  /** Model that requests name; undefined: the default one. */
  #model: string | undefined;
  #facts: ModelFacts | undefined;
  /** The provider's refusal of the conversation since the last answer. */
  #refusal: Error | undefined;
  /** Tokens below which no compaction is tried. */
  #noCompactionBelow = 0;

  constructor(options: TurnConversationOptions) {
    const { host, options: turn } = options;
    this.#options = options;
    this.#host = host;
    this.#client = new Map(turn.clientTools?.map((tool) => [tool.name, tool]));
    this.#model = turn.model ?? host.config.model;
  }

  isClientTool(name: string): boolean {
    return this.#client.has(name);
  }

  toolOf(name: string): Tool | undefined {
    return this.#server.get(name);
  }

  get toolNames(): readonly string[] {
    return [...this.#server.keys(), ...this.#client.keys()];
  }

  /** Tool of a call of an earlier turn, which the caller has run since. */
  nameOfCall(callId: string): string {
    const { store, threadId } = this.#host;
    const items = store.turns(threadId, { limit: 5 }).flatMap((turn) => turn.items);
    const call = items.find((item) => item.type === 'toolCall' && item.callId === callId);
    return call?.type === 'toolCall' ? call.tool : 'unknown';
  }

  /** Collects messages and tools. */
  async prepare(signal: AbortSignal): Promise<void> {
    const { tools, provider } = this.#host;
    const { options } = this.#options;
    await this.#know(provider);
    signal.throwIfAborted();
    const server = options.tools === 'none' ? [] : tools();
    this.#server = new Map(server.filter(({ name }) => !this.#client.has(name)).map((tool) => [tool.name, tool]));
    await this.#collect();
    this.#traceForeignStates();
  }

  /** Records what another model than that of the newest answer cannot read. */
  #traceForeignStates(): void {
    const newest = this.#messages.findLast((message) => message.role === 'assistant' && message.state !== undefined);
    const { host, turnId } = this.#options;
    const owner = this.#facts?.owner;
    if (newest?.role !== 'assistant' || owner === undefined || newest.state?.owner === owner) return;
    host.tracer?.modelReplaced({ threadId: host.threadId, turnId }, owner, this.foreignStates);
  }

  /** Changes the model of the later requests. The state of answers by another one stays behind, and the trace says so. */
  async useModel(model: string): Promise<void> {
    this.#model = model;
    this.#count.forget();
    await this.#know(this.#host.provider);
  }

  /** Model that requests name; undefined: the default one. */
  get model(): string | undefined {
    return this.#model;
  }

  /** Estimated tokens of the conversation. */
  get tokens(): number {
    return this.#count.estimate(this.#messages, this.#toolBytes());
  }

  /** Makes room by leaving out old results. True: the conversation still exceeds the window, and can be summarised. */
  checkRoom(): boolean {
    const { isAutomatic } = this.#host.settings.compaction;
    if (!isAutomatic || this.tokens <= this.#room()) return false;
    this.#prune(keptShare, pruneShare);
    return this.tokens > this.#room() && this.tokens >= this.#noCompactionBelow && this.#cut() > 0;
  }

  /** Leaves out old results. @param kept share of the window whose results stay @param least share that must be won */
  #prune(kept: number, least: number): boolean {
    const bytesIn = (share: number) => (this.#window() * share) / this.#count.ratio;
    const shorter = pruned(this.#messages, {
      keepBytes: bytesIn(kept),
      maxResultBytes: bytesIn(kept),
      minBytes: Math.max(1, bytesIn(least)),
    });
    if (!shorter) return false;
    this.#messages = shorter;
    this.#count.forget();
    return true;
  }

  /** The provider refused the conversation as too long. */
  noteTooLong(refusal: Error): void {
    this.#refusal = refusal;
    const { learnedWindows } = this.#host;
    const refused = Math.min(this.#window(), this.tokens) * shrink;
    learnedWindows.set(this.#model ?? '', Math.max(leastWindow, Math.floor(refused)));
  }

  /** Removes the states of all earlier answers, which the provider refuses. @returns whether there were any */
  dropStates(): boolean {
    const { store, threadId, journal } = this.#host;
    if (!this.#messages.some((message) => message.role === 'assistant' && message.state)) return false;
    journal.flush();
    store.deleteAnswerStates(threadId);
    this.#past = undefined;
    this.#states.clear();
    this.#messages = this.#messages.map((message) => {
      if (message.role !== 'assistant') return message;
      const { state: _, ...rest } = message;
      return rest;
    });
    this.#count.forget();
    return true;
  }

  /** Takes in the provider's count of the last request. @param request the one that was counted */
  noteUsage({ inputTokens, isEstimated }: ModelUsage, { messages }: ModelRequest): void {
    this.#refusal = undefined;
    if (isEstimated !== true) this.#count.observe(messages, this.#toolBytes(), inputTokens);
  }

  /** Replaces the older part by a summary. The requests of the running turn stay verbatim. */
  async compact(signal: AbortSignal): Promise<void> {
    const { threadId, store, provider, tracer } = this.#host;
    const { turnId, publish, onSummaryUsed, items } = this.#options;
    const place = { threadId, turnId };
    const report = (kind: string, message: string) =>
      publish({ method: 'system/event', params: { ...place, kind, message } });
    const all = this.#items();
    const cut = this.#cut();
    const last = all[cut - 1];
    if (!last) {
      // Nothing to summarise: the same request would be refused again.
      if (this.#refusal && !this.#prune(leastKeptShare, 0)) throw this.#refusal;
      return;
    }
    report('compacting', 'The conversation has become long; its older part is being summarised.');
    const before = this.tokens;
    const began = performance.now();
    const earlier = this.#earlier().compaction;
    const summary = await summarise({
      provider: await provider(),
      model: this.#model,
      items: all.slice(0, cut),
      earlier: earlier?.summary,
      transcriptBytes: Math.floor((this.#window() * transcriptShare) / this.#count.ratio),
      signal,
      onUsed: onSummaryUsed,
    });
    signal.throwIfAborted();
    const requests = requestsOf(
      all.slice(0, cut),
      earlier?.requests ?? [],
      (item) => item.turnId === turnId,
      Math.min(olderRequestTokens, this.#window() * olderRequestShare) / this.#count.ratio,
    );
    this.#host.journal.flush();
    store.putCompaction(threadId, {
      throughTurnId: last.turnId,
      throughItemId: last.id,
      summary,
      requests,
      at: new Date().toISOString(),
    });
    this.#past = undefined;
    this.#count.forget();
    await this.#collect();
    const after = this.tokens;
    this.#noCompactionBelow = before - after < this.#window() * leastWin ? after + this.#window() * regrowShare : 0;
    const text = `The older part of the conversation was summarised: about ${before} tokens became ${after}.`;
    items.add({ type: 'systemNotice', kind: 'contextCompacted', text });
    tracer?.contextCompacted(place, performance.now() - began, before, after);
    report('compacted', text);
  }

  async addUser(input: readonly InputPart[]): Promise<void> {
    await this.#readImages(imagePathsIn(input));
    this.#messages.push({ role: 'user', content: contentOf(input, this.#images) });
  }

  /** @param lastItemId the last item of the answer */
  addAnswer(
    text: string,
    toolCalls: readonly ModelToolCall[],
    state: ModelState | undefined,
    lastItemId: string | undefined,
  ): void {
    this.#messages.push({ role: 'assistant', text, toolCalls, ...(state && { state }) });
    if (state && lastItemId !== undefined) this.#states.set(lastItemId, state);
  }

  addResults(results: readonly CallResult[]): void {
    for (const { reviewed, text, images } of results) {
      const { callId, name } = reviewed.call;
      this.#messages.push({ role: 'tool', callId, name, content: [{ type: 'text', text }, ...images] });
    }
  }

  request(toolChoice: ToolChoice | undefined): ModelRequest {
    const { responseFormat, sampling, effort, maxOutputTokens } = this.#options.options;
    const { config, threadId } = this.#host;
    const tools = this.#tools();
    return {
      model: this.#model,
      messages: this.#messages,
      ...(tools.length > 0 && { tools, toolChoice }),
      responseFormat,
      sampling,
      effort: effort ?? config.effort,
      maxOutputTokens: maxOutputTokens ?? config.maxOutputTokens,
      cacheKey: threadId,
    };
  }

  /** Answers whose state the model of the turn cannot read. */
  get foreignStates(): number {
    const owner = this.#facts?.owner;
    if (owner === undefined) return 0;
    return this.#messages.filter(
      (message) => message.role === 'assistant' && message.state !== undefined && message.state.owner !== owner,
    ).length;
  }

  async #know(provider: TurnHost['provider']): Promise<void> {
    this.#facts = (await provider()).facts?.(this.#model);
  }

  #tools(): readonly ModelTool[] {
    return [...this.#client.values(), ...Array.from(this.#server.values(), asModelTool)];
  }

  #toolBytes(): number {
    return this.#tools().reduce((bytes, tool) => bytes + toolBytes(tool), 0);
  }

  #window(): number {
    const { settings, learnedWindows } = this.#host;
    const known = settings.compaction.contextWindow || (this.#facts?.contextWindow ?? usualWindow);
    return Math.min(known, learnedWindows.get(this.#model ?? '') ?? known);
  }

  /** Tokens that a request may have. */
  #room(): number {
    const { reserveTokens } = this.#host.settings.compaction;
    const maxOutputTokens = this.#options.options.maxOutputTokens ?? this.#host.config.maxOutputTokens;
    return this.#window() - reserveOf(this.#window(), { reserveTokens, maxOutputTokens });
  }

  /** Items of the conversation that no summary covers yet, oldest first. */
  #items(): readonly Item[] {
    return [...this.#earlier().turns.flatMap(({ items }) => items), ...this.#ownItems()];
  }

  /** Items of this turn that no summary covers yet. */
  #ownItems(): readonly Item[] {
    const { turnId, items } = this.#options;
    const { compaction } = this.#earlier();
    const own = items.snapshot();
    if (compaction?.throughTurnId !== turnId) return own;
    return own.slice(own.findIndex(({ id }) => id === compaction.throughItemId) + 1);
  }

  /** Index of the first item that a compaction leaves unchanged. A conversation that the caller sends cannot be summarised. */
  #cut(): number {
    if (this.#options.options.history !== undefined) return 0;
    const items = this.#items();
    const bytesIn = (share: number) => (this.#window() * share) / this.#count.ratio;
    // A refused conversation may be far shorter than the window that was assumed.
    const keepBytes = this.#refusal
      ? Math.min(bytesIn(leastKeptShare), sizeOfItems(items) * leastKeptPart)
      : bytesIn(keptShare);
    return cutOf(items, keepBytes);
  }

  /** Earlier turns, read once: they do not change while this turn runs. */
  #earlier(): Past {
    const { store, threadId } = this.#host;
    if (!this.#past) {
      const compaction = store.compaction(threadId);
      const turns = store.turnsSince(threadId, compaction).filter(({ id }) => id !== this.#options.turnId);
      this.#past = { compaction, turns, states: store.answerStates(threadId, compaction) };
    }
    return this.#past;
  }

  #conversationUpTo(now: Pick<Turn, 'items'>): ModelMessage[] {
    const { compaction, turns, states } = this.#earlier();
    return conversationOf(compaction, [...turns, now], this.#images, new Map([...states, ...this.#states]));
  }

  async #readImages(paths: readonly string[]): Promise<void> {
    const { readImage, workspacePath } = this.#host;
    for (const path of paths) {
      if (this.#imagesTried.has(path)) continue;
      this.#imagesTried.add(path);
      const image = await readImage(path, workspacePath);
      if (image) this.#images.set(path, image);
    }
  }

  async #collect(): Promise<void> {
    const { workspacePath, settings, config } = this.#host;
    const { history, instructions = [] } = this.#options.options;
    const text = systemPrompt({
      workspacePath,
      hasTools: this.#server.size > 0,
      additions: [settings.systemPrompt, config.agentInstructions ?? '', ...instructions],
    });
    const now = { items: [...this.#ownItems()] };
    const paths = imagePathsOf(history ? [now] : [...this.#earlier().turns, now]);
    if (paths.length > 0) await this.#readImages(paths);
    const conversation = history
      ? [
          ...history,
          ...messagesOf(
            now.items.filter(({ type }) => type === 'userMessage'),
            this.#images,
          ),
        ]
      : this.#conversationUpTo(now);
    this.#messages = [{ role: 'system', text }, ...conversation];
  }
}

/** Earlier turns after the latest summary, and that summary. */
interface Past {
  readonly compaction: Compaction | undefined;
  readonly turns: readonly Turn[];
  readonly states: ReadonlyMap<string, ModelState>;
}

const declared = new WeakMap<ModelTool, number>();

/** Size of a declaration, measured once. */
function toolBytes(tool: ModelTool): number {
  let bytes = declared.get(tool);
  if (bytes === undefined) {
    bytes = tool.name.length + tool.description.length + JSON.stringify(tool.inputSchema).length;
    declared.set(tool, bytes);
  }
  return bytes;
}

/** Declarations, one per tool: providers recognise a tool by identity. */
const modelTools = new WeakMap<Tool, ModelTool>();

function asModelTool(tool: Tool): ModelTool {
  let known = modelTools.get(tool);
  if (!known) {
    const { name, description, inputSchema } = tool;
    known = { name, description, inputSchema };
    modelTools.set(tool, known);
  }
  return known;
}
