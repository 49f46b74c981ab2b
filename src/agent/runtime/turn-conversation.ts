import type { InputPart, Turn } from '../../protocol/index.ts';
import { contentOf, estimateTokens, imagePathsIn, imagePathsOf, messagesOf } from '../history.ts';
import type { ContentPart, ModelMessage, ModelRequest, ModelTool, ModelToolCall, ToolChoice } from '../model.ts';
import type { Compaction } from '../thread-store.ts';
import type { Tool } from '../tool.ts';
import type { CallResult } from './call-runner.ts';
import { compact, conversationOf } from './compaction.ts';
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
}

/** Conversation of one turn and its tools: collected at the start, then extended. */
export class TurnConversation {
  readonly #host: TurnHost;
  readonly #turnId: string;
  readonly #options: TurnOptions;
  readonly #items: TurnItems;
  readonly #publish: (event: ThreadEvent) => void;
  readonly #client: ReadonlyMap<string, ModelTool>;
  #server: ReadonlyMap<string, Tool> = new Map();
  #messages: ModelMessage[] = [];
  #past: Past | undefined;
  /** Images of messages by path, each read once in a turn. */
  readonly #images = new Map<string, ContentPart>();
  readonly #imagesTried = new Set<string>();

  constructor({ host, turnId, options, items, publish }: TurnConversationOptions) {
    this.#host = host;
    this.#turnId = turnId;
    this.#options = options;
    this.#items = items;
    this.#publish = publish;
    this.#client = new Map(options.clientTools?.map((tool) => [tool.name, tool]));
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

  /** Collects messages and tools. `isTooLong`: they exceed the context window and can be compacted. */
  async prepare(signal: AbortSignal): Promise<{ readonly isTooLong: boolean }> {
    const { settings, tools, provider } = this.#host;
    await provider();
    signal.throwIfAborted();
    const server = this.#options.tools === 'none' ? [] : tools();
    this.#server = new Map(server.filter(({ name }) => !this.#client.has(name)).map((tool) => [tool.name, tool]));
    await this.#collect();
    const { isAutomatic, contextWindow, reserveTokens } = settings.compaction;
    const isTooLong = isAutomatic && this.#canCompact() && this.tokens > contextWindow - reserveTokens;
    return { isTooLong };
  }

  /** Estimated tokens of the conversation. */
  get tokens(): number {
    return estimateTokens(this.#messages);
  }

  /** Replaces older turns by a summary. */
  async compact(signal: AbortSignal): Promise<void> {
    const { threadId, store, provider, settings, tracer } = this.#host;
    const place = { threadId, turnId: this.#turnId };
    const report = (kind: string, message: string) =>
      this.#publish({ method: 'system/event', params: { ...place, kind, message } });
    if (!this.#canCompact()) return;
    report('compacting', 'The conversation has become long; older turns are being summarised.');
    const { turns, compaction: earlier } = this.#earlier();
    const before = this.tokens;
    const began = performance.now();
    const done = await compact({
      provider: await provider(),
      model: this.#options.model ?? this.#host.config.model,
      turns,
      earlier,
      keepRecentTurns: settings.compaction.keepRecentTurns - 1,
      signal,
      onUsed: (use) => tracer?.tokensUsed(place, use, 'compaction'),
    });
    signal.throwIfAborted();
    if (!done) return;
    store.putCompaction(threadId, done);
    this.#past = undefined;
    await this.#collect();
    const text = `Older turns were summarised: about ${before} tokens became ${this.tokens}.`;
    this.#items.add({ type: 'systemNotice', kind: 'contextCompacted', text });
    tracer?.contextCompacted(place, performance.now() - began, before, this.tokens);
    report('compacted', text);
  }

  async addUser(input: readonly InputPart[]): Promise<void> {
    await this.#readImages(imagePathsIn(input));
    this.#messages.push({ role: 'user', content: contentOf(input, this.#images) });
  }

  addAnswer(text: string, toolCalls: readonly ModelToolCall[]): void {
    this.#messages.push({ role: 'assistant', text, toolCalls });
  }

  addResults(results: readonly CallResult[]): void {
    for (const { reviewed, text, images } of results) {
      const { callId, name } = reviewed.call;
      this.#messages.push({ role: 'tool', callId, name, content: [{ type: 'text', text }, ...images] });
    }
  }

  request(toolChoice: ToolChoice | undefined): ModelRequest {
    const { model, responseFormat, sampling } = this.#options;
    const tools = [...this.#client.values(), ...Array.from(this.#server.values(), asModelTool)];
    return {
      model: model ?? this.#host.config.model,
      messages: this.#messages,
      ...(tools.length > 0 && { tools, toolChoice }),
      responseFormat,
      sampling,
    };
  }

  /** A conversation that the caller sends with every request cannot be summarised. */
  #canCompact(): boolean {
    if (this.#options.history !== undefined) return false;
    return this.#earlier().turns.length >= this.#host.settings.compaction.keepRecentTurns;
  }

  /** Earlier turns, read once: they do not change while this turn runs. */
  #earlier(): Past {
    const { store, threadId } = this.#host;
    if (!this.#past) {
      const compaction = store.compaction(threadId);
      const turns = store.turnsSince(threadId, compaction?.throughTurnId).filter(({ id }) => id !== this.#turnId);
      this.#past = { compaction, turns };
    }
    return this.#past;
  }

  #conversationUpTo(now: Pick<Turn, 'items'>): ModelMessage[] {
    const { compaction, turns } = this.#earlier();
    return conversationOf(compaction, [...turns, now], this.#images);
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
    const { history, instructions = [] } = this.#options;
    const text = systemPrompt({
      workspacePath,
      hasTools: this.#server.size > 0,
      additions: [settings.systemPrompt, config.agentInstructions ?? '', ...instructions],
    });
    const now = { items: this.#items.snapshot() };
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
