import { count } from '../../../lib/index.ts';
import type { ApprovalPolicy, InputPart, ItemOf } from '../../../protocol/index.ts';
import { TokenCount } from '../../context/index.ts';
import {
  hookMessage,
  imagePathsIn,
  imagePathsOf,
  messagesOf,
  modeNotice,
  pictureRefusedNotice,
  refusedToolsIn,
  toolRefusedNotice,
} from '../../history.ts';
import { brief, systemPrompt } from '../../instructions/index.ts';
import { skillToolName } from '../../library/index.ts';
import type {
  ModelError,
  ModelMessage,
  ModelRequest,
  ModelState,
  ModelToolCall,
  ModelUsage,
  ToolChoice,
} from '../../model.ts';
import type { ModelUse } from '../../model-call.ts';
import type { Briefing } from '../../thread-store.ts';
import type { Tool } from '../../tool.ts';
import type { ThreadEvent } from '../feed.ts';
import type { TurnOptions } from '../types.ts';
import type { MadeResult } from './call-runner.ts';
import { ContextWindow } from './context-window.ts';
import type { TurnHooks } from './hooks.ts';
import type { TurnHost } from './host.ts';
import { TurnImages } from './images.ts';
import type { TurnItems } from './items.ts';
import { TurnModel } from './model.ts';
import { TurnPast } from './past.ts';
import { planNote } from './plan-mode.ts';
import { RefusedPictures } from './refused-pictures.ts';
import { refusedTool } from './refused-tools.ts';
import { TurnTools } from './tools.ts';

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

/** Conversation of one turn and its tools: collected at the start, then extended, and made to fit the model's window. */
export class TurnConversation {
  readonly #options: TurnConversationOptions;
  readonly #host: TurnHost;
  readonly tools: TurnTools;
  /** Room for it in the window of the model. */
  readonly room: ContextWindow;
  readonly #past: TurnPast;
  readonly #count = new TokenCount();
  #messages: ModelMessage[] = [];
  readonly #images: TurnImages;
  readonly #model: TurnModel;
  readonly #refusedPictures = new RefusedPictures();
  /** Tools left out since the last answer. */
  readonly #refusedTools: string[] = [];

  constructor(options: TurnConversationOptions) {
    const { host, turnId, items, options: turn } = options;
    this.#options = options;
    this.#host = host;
    this.tools = new TurnTools(turn.clientTools);
    this.#past = new TurnPast({ host, turnId, items });
    this.#images = new TurnImages(host);
    this.#model = new TurnModel(host, turn);
    this.room = new ContextWindow({
      ...{ host, turnId, items, past: this.#past, model: this.#model, count: this.#count },
      publish: options.publish,
      onSummaryUsed: options.onSummaryUsed,
      canSummarise: turn.history === undefined,
      tokens: () => this.tokens,
      messages: () => this.#messages,
      replace: (messages) => {
        this.#messages = messages;
      },
      collect: async (signal) => this.#collect(await this.#briefing(signal)),
    });
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
    this.tools.leaveOut(refusedToolsIn(this.#past.items()));
    for (const message of this.tools.takeProblems()) this.#publishToolProblem(message);
    await this.#collect(briefing);
    this.#traceForeignStates();
  }

  #publishToolProblem(message: string): void {
    const { turnId, publish } = this.#options;
    const { threadId } = this.#host;
    publish({ method: 'system/event', params: { threadId, turnId, kind: 'toolProblem', message } });
  }

  #offered({ skills }: Briefing): readonly Tool[] {
    const { tools } = this.#options.options;
    if (tools === 'none') return [];
    if (tools !== 'standard')
      return this.#host.tools().filter(({ name }) => skills !== undefined || name !== skillToolName);
    const named = new Set(this.#host.config.enabledTools?.map((name) => name.toLowerCase()));
    return this.#host.tools().filter(({ name, isExtra }) => isExtra !== true || named.has(name.toLowerCase()));
  }

  /** Records states that a model other than the one of the newest answer cannot read. */
  #traceForeignStates(): void {
    const newest = this.#messages.findLast((message) => message.role === 'assistant' && message.state !== undefined);
    const { host, turnId } = this.#options;
    const { owner } = this.#model;
    if (newest?.role !== 'assistant' || owner === undefined || newest.state?.owner === owner) return;
    host.tracer?.modelReplaced({ threadId: host.threadId, turnId }, owner, this.foreignStates);
  }

  /** Changes the model of the later requests. The state of another model's answers is left out, and the trace records that. */
  async useModel(model: string): Promise<void> {
    this.#count.forget();
    await this.#model.know(model);
  }

  /** Estimated tokens of the conversation. */
  get tokens(): number {
    return this.#count.estimate(this.#messages, this.tools.bytes);
  }

  /**
   * Leaves out the part of the request that the service has refused.
   * @returns the part in words; undefined: nothing can be left out
   */
  leaveOut(refusal: ModelError): string | undefined {
    for (const omit of this.#omissions) {
      const leftOut = omit(refusal);
      if (leftOut !== undefined) return leftOut;
    }
    return undefined;
  }

  /** Parts that a request can do without. Each returns the part that it has left out in words; undefined: the refusal concerns another one. */
  readonly #omissions: readonly ((refusal: ModelError) => string | undefined)[] = [
    ({ refusesState }) => (refusesState && this.#dropStates() ? "the model's notes on earlier answers" : undefined),
    // A refusal that names a tool is the more exact one: each refusal may concern a picture.
    (refusal) => this.#leaveOutTool(refusal),
    (refusal) => this.#leaveOutPictures(refusal),
  ];

  #leaveOutTool(refusal: ModelError): string | undefined {
    const { toolChoice } = this.#options.options;
    const names = this.tools.declarations.map(({ name }) => name);
    // A request that demands one tool cannot do without it.
    const wanted = typeof toolChoice === 'object' ? toolChoice.name : undefined;
    const name = refusedTool(refusal, names);
    if (name === undefined || name === wanted) return undefined;
    this.#refusedTools.push(name);
    this.tools.leaveOut([name]);
    this.#count.forget();
    return `the tool ${name}`;
  }

  #leaveOutPictures(refusal: ModelError): string | undefined {
    const rest = this.#refusedPictures.leaveOut(refusal, this.#messages);
    if (!rest) return undefined;
    this.#messages = rest.messages;
    this.#count.forget();
    return count(rest.count, 'picture');
  }

  /** Removes the states of all earlier answers. @returns whether there were any */
  #dropStates(): boolean {
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
    this.room.noteAnswer();
    if (isEstimated !== true) this.#count.observe(messages, this.tools.bytes, inputTokens);
  }

  async addUser(item: ItemOf<'userMessage'>): Promise<void> {
    const images = await this.#images.read(imagePathsIn(item.input));
    this.#messages.push(...messagesOf([item], { images }));
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
    this.#notePictures(this.#refusedPictures.confirm());
    this.#noteTools(this.#refusedTools.splice(0));
  }

  #notePictures(itemIds: readonly string[]): void {
    if (itemIds.length === 0) return;
    const notice = 'The service of the model refused pictures of this conversation; the model no longer gets them.';
    this.#options.items.add({ type: 'systemNotice', kind: pictureRefusedNotice, text: notice, itemIds: [...itemIds] });
  }

  #noteTools(tools: readonly string[]): void {
    if (tools.length === 0) return;
    const subject = tools.length === 1 ? 'tool' : 'tools';
    const text =
      `The service of the model refused the ${subject} ${tools.join(', ')}; the model no longer gets ` +
      `${tools.length === 1 ? 'it' : 'them'} in this conversation. Correct the schema where the tool is defined, then start a new conversation.`;
    this.#options.items.add({ type: 'systemNotice', kind: toolRefusedNotice, text, tools: [...tools] });
    this.#publishToolProblem(text);
  }

  /** Texts of the results in it. */
  *results(): Iterable<string> {
    for (const message of this.#messages) {
      if (message.role !== 'tool') continue;
      for (const part of message.content) if (part.type === 'text') yield part.text;
    }
  }

  /** Adds the texts of the user's hooks for the model. */
  addHookText(text: string): void {
    this.#messages.push(hookMessage(text));
  }

  /** Adds words about the mode of the turn, which later turns contain, too. */
  addModeText(text: string): void {
    this.#options.items.add({ type: 'systemNotice', kind: modeNotice, text });
    this.addNote(text);
  }

  /** Adds words for the model that are not an item of the thread. */
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
    const withoutPictures = this.#refusedPictures.itemIds;
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
      this.#messages = [{ role: 'system', text }, ...history, ...messagesOf(own, { images, withoutPictures })];
      return;
    }
    const images = await this.#images.read(this.#past.imagePaths());
    this.#messages = [{ role: 'system', text }, ...this.#past.conversation({ images, withoutPictures })];
  }
}
