import { count } from '../../../lib/index.ts';
import type { ItemOf } from '../../../protocol/index.ts';
import { TokenCount } from '../../context/index.ts';
import {
  hookContextNotice,
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
import { askUserTool } from '../../question.ts';
import type { Briefing } from '../../thread-store.ts';
import type { Tool } from '../../tool.ts';
import type { MadeResult } from './call-runner.ts';
import type { TurnContext } from './context.ts';
import { ContextWindow } from './context-window.ts';
import { PromptBlockedError, type TurnHooks } from './hooks.ts';
import { TurnImages } from './images.ts';
import { TurnModel } from './model.ts';
import { TurnPast } from './past.ts';
import { planNote } from './plan-mode.ts';
import { RefusedPictures, refusedTool } from './refused-parts.ts';
import { changedFilesNote } from './resumption.ts';
import { TurnTools } from './tools.ts';

export interface TurnConversationOptions {
  readonly turn: TurnContext;
  readonly hooks: TurnHooks;
  /** Called with the usage of a summary. */
  readonly onSummaryUsed: (use: ModelUse) => void;
}

/** Conversation of one turn and its tools: collected at the start, then extended, and made to fit the model's window. */
export class TurnConversation {
  readonly #turn: TurnContext;
  readonly #hooks: TurnHooks;
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
  #notes: string[] = [];
  /** Pending texts of a resumed turn for the model, which follow the results of its open calls. */
  #unsaid: (() => void)[] = [];

  constructor({ turn, hooks, onSummaryUsed }: TurnConversationOptions) {
    this.#turn = turn;
    this.#hooks = hooks;
    this.tools = new TurnTools(turn.options.clientTools);
    this.#past = new TurnPast(turn);
    this.#images = new TurnImages(turn);
    this.#model = new TurnModel(turn);
    this.room = new ContextWindow({
      ...{ turn, past: this.#past, model: this.#model, count: this.#count, onSummaryUsed },
      tokens: () => this.tokens,
      messages: () => this.#messages,
      replace: (messages) => {
        this.#messages = messages;
      },
      collect: async (signal) => this.#collect(await this.#briefing(signal)),
    });
  }

  /** Model of the requests; undefined: the default one. */
  get modelName(): string | undefined {
    return this.#model.name;
  }

  /** Collects messages and tools. */
  async prepare(signal: AbortSignal): Promise<void> {
    await this.#model.know();
    signal.throwIfAborted();
    const { input, isPlanning, record } = this.#turn;
    const briefing = await this.#briefing(signal);
    if (!this.#has(hookContextNotice)) await this.#hooks.submitPrompt(input, signal);
    if (isPlanning && !this.#has(modeNotice))
      record.items.add({ type: 'systemNotice', kind: modeNotice, text: planNote });
    await this.#begin(briefing);
  }

  /** Whether an earlier process has added such a notice to this turn. */
  #has(kind: string): boolean {
    const { resumed, record } = this.#turn;
    return resumed !== undefined && record.items.last('systemNotice', (item) => item.kind === kind) !== undefined;
  }

  /**
   * Collects the messages and tools of a turn that an earlier process began.
   * @param model fallback model in use; undefined: the turn's own @param notes see `notes`
   */
  async restore(signal: AbortSignal, model: string | undefined, notes: readonly string[]): Promise<void> {
    await this.#model.know(model);
    signal.throwIfAborted();
    await this.#resubmitPrompt(signal);
    await this.#begin(await this.#briefing(signal));
    this.#notes = [...notes, ...(await changedFilesNote(this.#turn, (name) => this.tools.toolOf(name)))];
    this.#unsaid = this.#notes.map((note) => () => this.#say(note));
    if (this.#turn.isPlanning && !this.#has(modeNotice)) this.#unsaid.push(() => this.addModeText(planNote));
  }

  /** Passes the latest input to its hooks again if a kill may have interrupted them: they can block it. */
  async #resubmitPrompt(signal: AbortSignal): Promise<void> {
    const said = this.#turn.record.items
      .snapshot()
      .filter((item) => item.type !== 'systemNotice' || item.kind !== 'turnResumed');
    const last = said.at(-1);
    // `prepare` runs the hooks of the turn's first prompt.
    if (last?.type !== 'userMessage' || last === said.find(({ type }) => type === 'userMessage')) return;
    try {
      await this.#hooks.submitPrompt(last.input, signal);
    } catch (error) {
      if (!(error instanceof PromptBlockedError)) throw error;
    }
  }

  /** Adds the pending texts of a resumed turn for the model. Call it before a request. */
  addUnsaid(): void {
    for (const add of this.#unsaid.splice(0)) add();
  }

  async #begin(briefing: Briefing): Promise<void> {
    this.tools.offer(this.#offered(briefing));
    this.tools.leaveOut(refusedToolsIn(this.#past.items()));
    for (const message of this.tools.takeProblems()) this.#publishToolProblem(message);
    await this.#collect(briefing);
    this.#traceForeignStates();
  }

  /** Words for the model since its last answer that are not items. */
  get notes(): readonly string[] {
    return this.#notes;
  }

  #publishToolProblem(message: string): void {
    const { place, record } = this.#turn;
    record.publish({ method: 'system/event', params: { ...place, kind: 'toolProblem', message } });
  }

  #offered({ skills }: Briefing): readonly Tool[] {
    const { thread, options, canAsk } = this.#turn;
    const { tools } = options;
    if (tools === 'none') return [];
    const isUseless = (name: string) =>
      (name === skillToolName && skills === undefined) || (name === askUserTool && !canAsk);
    if (tools !== 'standard') return thread.tools().filter(({ name }) => !isUseless(name));
    const named = new Set(thread.config.enabledTools?.map((name) => name.toLowerCase()));
    return thread.tools().filter(({ name, isExtra }) => isExtra !== true || named.has(name.toLowerCase()));
  }

  /** Records states that a model other than the one of the newest answer cannot read. */
  #traceForeignStates(): void {
    const newest = this.#messages.findLast((message) => message.role === 'assistant' && message.state !== undefined);
    const { services, place } = this.#turn;
    const { owner } = this.#model;
    if (newest?.role !== 'assistant' || owner === undefined || newest.state?.owner === owner) return;
    services.tracer?.modelReplaced(place, owner, this.foreignStates);
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
    const { toolChoice } = this.#turn.options;
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
    this.#notes = [];
    this.#messages.push({ role: 'assistant', text, toolCalls, ...(state && { state }) });
    if (state && lastItemId !== undefined) this.#past.addState(lastItemId, state);
    this.#notePictures(this.#refusedPictures.confirm());
    this.#noteTools(this.#refusedTools.splice(0));
  }

  #notePictures(itemIds: readonly string[]): void {
    if (itemIds.length === 0) return;
    const notice = 'The service of the model refused pictures of this conversation; the model no longer gets them.';
    this.#turn.record.items.add({
      type: 'systemNotice',
      kind: pictureRefusedNotice,
      text: notice,
      itemIds: [...itemIds],
    });
  }

  #noteTools(tools: readonly string[]): void {
    if (tools.length === 0) return;
    const subject = tools.length === 1 ? 'tool' : 'tools';
    const text =
      `The service of the model refused the ${subject} ${tools.join(', ')}; the model no longer gets ` +
      `${tools.length === 1 ? 'it' : 'them'} in this conversation. Correct the schema where the tool is defined, then start a new conversation.`;
    this.#turn.record.items.add({ type: 'systemNotice', kind: toolRefusedNotice, text, tools: [...tools] });
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
    this.#turn.record.items.add({ type: 'systemNotice', kind: modeNotice, text });
    this.#say(text);
  }

  /** Adds words for the model that are not an item of the thread. */
  addNote(text: string): void {
    this.#notes.push(text);
    this.#say(text);
  }

  #say(text: string): void {
    this.#messages.push({ role: 'user', content: [{ type: 'text', text }] });
  }

  addResults(results: readonly MadeResult[]): void {
    for (const { reviewed, text, images } of results) {
      const { callId, name } = reviewed.call;
      this.#messages.push({ role: 'tool', callId, name, content: [{ type: 'text', text }, ...images] });
    }
  }

  request(toolChoice: ToolChoice | undefined): ModelRequest {
    const { thread, place, options } = this.#turn;
    const { responseFormat, sampling, effort } = options;
    const tools = this.tools.declarations;
    return {
      model: this.#model.name,
      messages: this.#messages,
      ...(tools.length > 0 && { tools, toolChoice }),
      responseFormat,
      sampling,
      effort: effort ?? thread.config.effort,
      maxOutputTokens: this.#model.maxOutputTokens,
      cacheKey: place.threadId,
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
    const { services, thread } = this.#turn;
    const { id: threadId, store, workspacePath, config } = thread;
    const known = store.briefing(threadId);
    if (known) return known;
    // A read-only thread works on untrusted files, such as a pull request: their instructions do not count.
    const context = await this.#hooks.startSession(signal);
    const facts = await brief(services.surroundings, workspacePath, config.readOnly !== true);
    const briefing = context === '' ? facts : { ...facts, context: services.clean(context) };
    store.putBriefing(threadId, briefing);
    return briefing;
  }

  async #collect(briefing: Briefing): Promise<void> {
    const { services, thread, policy, options } = this.#turn;
    const { settings, surroundings } = services;
    const { workspacePath, directories, config } = thread;
    const { history, instructions = [] } = options;
    const withoutPictures = this.#refusedPictures.itemIds;
    const resultImages = this.#images.ofResults();
    const areCallsOpen = this.#turn.record.items.openCalls.length > 0;
    const text = systemPrompt({
      workspacePath,
      directories,
      briefing,
      tools: this.tools.serverNames,
      policy,
      commands: surroundings?.commands() ?? '',
      additions: [settings.systemPrompt, config.agentInstructions ?? '', ...instructions],
    });
    if (history) {
      const own = this.#past.ownItems();
      const images = await this.#images.read(imagePathsOf([{ items: [...own] }]));
      this.#messages = [
        { role: 'system', text },
        ...history,
        ...messagesOf(own, { images, resultImages, withoutPictures, areCallsOpen }),
      ];
      return;
    }
    const images = await this.#images.read(this.#past.imagePaths());
    this.#messages = [
      { role: 'system', text },
      ...this.#past.conversation({ images, resultImages, withoutPictures, areCallsOpen }),
    ];
  }
}
