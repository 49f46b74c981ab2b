import type { ApprovalPolicy, InputPart } from '../../protocol/index.ts';
import { compactionLimits, cutOf, pruned, requestsOf, sizeOfItems, summarise, TokenCount } from '../context/index.ts';
import { contentOf, hookMessage, imagePathsIn, imagePathsOf, messagesOf, modeNotice } from '../history.ts';
import { brief, systemPrompt } from '../instructions/index.ts';
import { skillToolName } from '../library/index.ts';
import type { ModelMessage, ModelRequest, ModelState, ModelToolCall, ModelUsage, ToolChoice } from '../model.ts';
import type { ModelUse } from '../model-call.ts';
import type { Briefing } from '../thread-store.ts';
import type { Tool } from '../tool.ts';
import type { MadeResult } from './call-runner.ts';
import type { ThreadEvent } from './feed.ts';
import { planNote } from './plan-mode.ts';
import type { TurnHooks } from './turn-hooks.ts';
import type { TurnHost } from './turn-host.ts';
import { TurnImages } from './turn-images.ts';
import type { TurnItems } from './turn-items.ts';
import { TurnModel } from './turn-model.ts';
import { TurnPast } from './turn-past.ts';
import { TurnTools } from './turn-tools.ts';
import type { TurnOptions } from './types.ts';

export interface TurnConversationOptions {
  readonly host: TurnHost;
  readonly turnId: string;
  readonly options: TurnOptions;
  readonly items: TurnItems;
  readonly policy: ApprovalPolicy;
  readonly isPlanning: boolean;
  /** Prompt of the turn. */
  readonly input: readonly InputPart[];
  readonly hooks: TurnHooks;
  /** Publishes an event of the turn after its earlier writes. */
  readonly publish: (event: ThreadEvent) => void;
  /** Called with the usage of a summary. */
  readonly onSummaryUsed: (use: ModelUse) => void;
}

/** Part of the window that stays unchanged in a compaction. */
const keptShare = 0.25;
/** The same once the provider has found the conversation too long, and as a part of that conversation. */
const leastKeptShare = 0.1;
const leastKeptPart = 0.25;
const { olderRequestTokens, transcriptShare } = compactionLimits;
/** Part of the window that older requests of the user may take at most. */
const olderRequestShare = 0.15;
/** Least part of the window that pruning must win. */
const pruneShare = 0.1;
/** A compaction that wins less is not tried again until the conversation has grown by `regrowShare`. */
const leastWin = 0.05;
const regrowShare = 0.1;

/** Conversation of one turn and its tools: collected at the start, then extended, and made to fit the model's window. */
export class TurnConversation {
  readonly #options: TurnConversationOptions;
  readonly #host: TurnHost;
  readonly tools: TurnTools;
  readonly #past: TurnPast;
  readonly #count = new TokenCount();
  #messages: ModelMessage[] = [];
  readonly #images: TurnImages;
  readonly #model: TurnModel;
  /** The provider's refusal of the conversation since the last answer. */
  #refusal: Error | undefined;
  /** Tokens below which no compaction is tried. */
  #noCompactionBelow = 0;

  constructor(options: TurnConversationOptions) {
    const { host, turnId, items, options: turn } = options;
    this.#options = options;
    this.#host = host;
    this.tools = new TurnTools(turn.clientTools);
    this.#past = new TurnPast({ host, turnId, items });
    this.#images = new TurnImages(host);
    this.#model = new TurnModel(host, turn);
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
    await this.#model.know();
    signal.throwIfAborted();
    const { hooks, input } = this.#options;
    const briefing = await this.#briefing(signal);
    await hooks.submitPrompt(input, signal);
    if (this.#options.isPlanning) this.#options.items.add({ type: 'systemNotice', kind: modeNotice, text: planNote });
    this.tools.offer(this.#offered(briefing));
    await this.#collect(briefing);
    this.#traceForeignStates();
  }

  #offered({ skills }: Briefing): readonly Tool[] {
    const { tools } = this.#options.options;
    if (tools === 'none') return [];
    if (tools !== 'standard')
      return this.#host.tools().filter(({ name }) => skills !== undefined || name !== skillToolName);
    const named = new Set(this.#host.config.enabledTools?.map((name) => name.toLowerCase()));
    return this.#host.tools().filter(({ name, isExtra }) => isExtra !== true || named.has(name.toLowerCase()));
  }

  /** Records what another model than that of the newest answer cannot read. */
  #traceForeignStates(): void {
    const newest = this.#messages.findLast((message) => message.role === 'assistant' && message.state !== undefined);
    const { host, turnId } = this.#options;
    const { owner } = this.#model;
    if (newest?.role !== 'assistant' || owner === undefined || newest.state?.owner === owner) return;
    host.tracer?.modelReplaced({ threadId: host.threadId, turnId }, owner, this.foreignStates);
  }

  /** Changes the model of the later requests. The state of answers by another one stays behind, and the trace says so. */
  async useModel(model: string): Promise<void> {
    this.#count.forget();
    await this.#model.know(model);
  }

  /** Estimated tokens of the conversation. */
  get tokens(): number {
    return this.#count.estimate(this.#messages, this.tools.bytes);
  }

  /** Makes room by leaving out old results. True: the conversation still exceeds the window, and can be summarised. */
  checkRoom(): boolean {
    const { isAutomatic } = this.#host.settings.compaction;
    if (!isAutomatic || this.tokens <= this.#model.room) return false;
    this.#prune(keptShare, pruneShare);
    return this.tokens > this.#model.room && this.tokens >= this.#noCompactionBelow && this.#cut() > 0;
  }

  /** Leaves out old results. @param kept share of the window whose results stay @param least share that must be won */
  #prune(kept: number, least: number): boolean {
    const bytesIn = (share: number) => (this.#model.window * share) / this.#count.ratio;
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
    this.#model.noteTooLong(this.tokens);
  }

  /** Removes the states of all earlier answers, which the provider refuses. @returns whether there were any */
  dropStates(): boolean {
    if (!this.#messages.some((message) => message.role === 'assistant' && message.state)) return false;
    this.#past.dropStates();
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
    if (isEstimated !== true) this.#count.observe(messages, this.tools.bytes, inputTokens);
  }

  /** Replaces the older part by a summary. The requests of the running turn stay verbatim. */
  async compact(signal: AbortSignal): Promise<void> {
    const { threadId, provider, tracer } = this.#host;
    const { turnId, publish, onSummaryUsed, items } = this.#options;
    const place = { threadId, turnId };
    const report = (kind: string, message: string) =>
      publish({ method: 'system/event', params: { ...place, kind, message } });
    const all = this.#past.items();
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
    const earlier = this.#past.compaction;
    const summary = await summarise({
      provider: await provider(),
      model: this.#model.name,
      items: all.slice(0, cut),
      earlier: earlier?.summary,
      transcriptBytes: Math.floor((this.#model.window * transcriptShare) / this.#count.ratio),
      signal,
      onUsed: onSummaryUsed,
    });
    signal.throwIfAborted();
    const requests = requestsOf(
      all.slice(0, cut),
      earlier?.requests ?? [],
      (item) => item.turnId === turnId,
      Math.min(olderRequestTokens, this.#model.window * olderRequestShare) / this.#count.ratio,
    );
    const at = new Date().toISOString();
    this.#past.summarise({ throughTurnId: last.turnId, throughItemId: last.id, summary, requests, at });
    this.#count.forget();
    await this.#collect(await this.#briefing(signal));
    const after = this.tokens;
    this.#noCompactionBelow =
      before - after < this.#model.window * leastWin ? after + this.#model.window * regrowShare : 0;
    const text = `The older part of the conversation was summarised: about ${before} tokens became ${after}.`;
    items.add({ type: 'systemNotice', kind: 'contextCompacted', text });
    tracer?.contextCompacted(place, performance.now() - began, before, after);
    report('compacted', text);
  }

  async addUser(input: readonly InputPart[]): Promise<void> {
    const images = await this.#images.read(imagePathsIn(input));
    this.#messages.push({ role: 'user', content: contentOf(input, images) });
  }

  /** @param lastItemId the last item of the answer */
  addAnswer(
    text: string,
    toolCalls: readonly ModelToolCall[],
    state: ModelState | undefined,
    lastItemId: string | undefined,
  ): void {
    this.#messages.push({ role: 'assistant', text, toolCalls, ...(state && { state }) });
    if (state && lastItemId !== undefined) this.#past.addState(lastItemId, state);
  }

  /** Texts of the results in it. */
  *results(): Iterable<string> {
    for (const message of this.#messages) {
      if (message.role !== 'tool') continue;
      for (const part of message.content) if (part.type === 'text') yield part.text;
    }
  }

  /** Adds what hooks of the user say to the model. */
  addHookText(text: string): void {
    this.#messages.push(hookMessage(text));
  }

  /** Adds words about the mode of the turn, which later turns contain, too. */
  addModeText(text: string): void {
    this.#options.items.add({ type: 'systemNotice', kind: modeNotice, text });
    this.addNote(text);
  }

  /** Adds words to the model that are no item of the thread. */
  addNote(text: string): void {
    this.#messages.push({ role: 'user', content: [{ type: 'text', text }] });
  }

  addResults(results: readonly MadeResult[]): void {
    for (const { reviewed, text, images } of results) {
      const { callId, name } = reviewed.call;
      this.#messages.push({ role: 'tool', callId, name, content: [{ type: 'text', text }, ...images] });
    }
  }

  request(toolChoice: ToolChoice | undefined): ModelRequest {
    const { responseFormat, sampling, effort } = this.#options.options;
    const { config, threadId } = this.#host;
    const tools = this.tools.declarations;
    return {
      model: this.#model.name,
      messages: this.#messages,
      ...(tools.length > 0 && { tools, toolChoice }),
      responseFormat,
      sampling,
      effort: effort ?? config.effort,
      maxOutputTokens: this.#model.maxOutputTokens,
      cacheKey: threadId,
    };
  }

  /** Answers whose state the model of the turn cannot read. */
  get foreignStates(): number {
    const { owner } = this.#model;
    if (owner === undefined) return 0;
    return this.#messages.filter(
      (message) => message.role === 'assistant' && message.state !== undefined && message.state.owner !== owner,
    ).length;
  }

  /** Index of the first item that a compaction leaves unchanged. A conversation that the caller sends cannot be summarised. */
  #cut(): number {
    if (this.#options.options.history !== undefined) return 0;
    const items = this.#past.items();
    const bytesIn = (share: number) => (this.#model.window * share) / this.#count.ratio;
    // A refused conversation may be far shorter than the window that was assumed.
    const keepBytes = this.#refusal
      ? Math.min(bytesIn(leastKeptShare), sizeOfItems(items) * leastKeptPart)
      : bytesIn(keptShare);
    return cutOf(items, keepBytes);
  }

  /** Facts that the thread has started with; collected with its first turn. */
  async #briefing(signal: AbortSignal): Promise<Briefing> {
    const { store, threadId, surroundings, workspacePath, config } = this.#host;
    const known = store.briefing(threadId);
    if (known) return known;
    // A read-only thread works on untrusted files, such as a pull request: their instructions do not count.
    const context = await this.#options.hooks.startSession(signal);
    const facts = await brief(surroundings, workspacePath, config.readOnly !== true);
    const briefing = context === '' ? facts : { ...facts, context: this.#host.clean(context) };
    store.putBriefing(threadId, briefing);
    return briefing;
  }

  async #collect(briefing: Briefing): Promise<void> {
    const { workspacePath, settings, config, surroundings } = this.#host;
    const { policy, options } = this.#options;
    const { history, instructions = [] } = options;
    const text = systemPrompt({
      workspacePath,
      briefing,
      tools: this.tools.serverNames,
      policy,
      commands: (await surroundings?.commands()) ?? '',
      additions: [settings.systemPrompt, config.agentInstructions ?? '', ...instructions],
    });
    if (history) {
      const own = this.#past.ownItems().filter(({ type }) => type === 'userMessage' || type === 'systemNotice');
      const images = await this.#images.read(imagePathsOf([{ items: [...own] }]));
      this.#messages = [{ role: 'system', text }, ...history, ...messagesOf(own, images)];
      return;
    }
    const images = await this.#images.read(this.#past.imagePaths());
    this.#messages = [{ role: 'system', text }, ...this.#past.conversation(images)];
  }
}
