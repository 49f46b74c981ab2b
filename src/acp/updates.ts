import type { ContentBlock, SessionUpdate, ToolCallContent, ToolCallStatus } from '@agentclientprotocol/sdk';
import { defaults, type InputPart, type Item, type ItemOf, type Turn } from '../protocol/index.ts';
import { type ShownCall, showCall } from './tool-calls.ts';

export interface UpdatesOptions {
  readonly workspacePath: string;
  readonly emit: (update: SessionUpdate) => void;
}

/** A call that an editor knows of. */
interface Call {
  readonly shown: ShownCall;
  output: string;
}

type TextUpdate = 'agent_message_chunk' | 'agent_thought_chunk';

/** Last line of a part of an answer that broke off. */
const withdrawn = '\n\n*[Withdrawn: the answer broke off and was requested again.]*\n\n';

const text = (words: string): ContentBlock => ({ type: 'text', text: words });

/**
 * Sends a session's editor the items of its thread. Of every item only the unsent part is sent, so that an item may come
 * piece by piece, whole, or both.
 */
export class Updates {
  readonly #options: UpdatesOptions;
  readonly #sentChars = new Map<string, number>();
  /** Texts that were sent and not withdrawn. */
  readonly #sent = new Map<string, TextUpdate>();
  readonly #done = new Set<string>();
  /** Turns that have more items than their first input. */
  readonly #answered = new Set<string>();
  readonly #calls = new Map<string, Call>();
  /** Calls that a model is still writing, and their turns. */
  readonly #announced = new Map<string, string>();
  /** Calls by the item of their command. */
  readonly #commands = new Map<string, string>();
  readonly #growing = new Set<string>();
  #timer: NodeJS.Timeout | undefined;

  constructor(options: UpdatesOptions) {
    this.#options = options;
  }

  /** Everything of these items that was not sent yet. The input that began `ownTurnId` is on the screen already. */
  sync({ id, items }: Pick<Turn, 'id' | 'items'>, ownTurnId?: string): void {
    for (const item of items) {
      const key = this.#key(id, item.id);
      if (item.type !== 'userMessage') this.#answered.add(id);
      else if (id === ownTurnId && !this.#answered.has(id)) this.#done.add(key);
      if (item.status === 'completed') this.complete(item);
      else if (!this.#done.has(key)) this.#open(item);
    }
  }

  begin(item: Item): void {
    if (item.type !== 'commandExecution') return;
    this.#commands.set(this.#key(item.turnId, item.id), item.callId);
    this.#status(item.callId, 'in_progress');
    this.output(item.turnId, item.id, item.output);
  }

  message(turnId: string, itemId: string, delta: string): void {
    this.#say('agent_message_chunk', turnId, itemId, delta);
  }

  thought(turnId: string, itemId: string, delta: string): void {
    this.#say('agent_thought_chunk', turnId, itemId, delta);
  }

  /** The answer broke off: a line under each sent part says that it is withdrawn. */
  discard(turnId: string, itemIds: readonly string[]): void {
    for (const itemId of itemIds) this.#withdraw(turnId, itemId);
  }

  /** The model has begun to write a call: the part of it that is known before its arguments. */
  announce(turnId: string, callId: string, tool: string): void {
    if (tool === '' || this.#announced.has(callId) || this.#calls.has(callId)) return;
    this.#announced.set(callId, turnId);
    const { title, kind } = showCall(tool, '', this.#options.workspacePath);
    this.#emit({ sessionUpdate: 'tool_call', toolCallId: callId, name: tool, status: 'pending', title, kind });
  }

  /** The turn is over: nothing comes of calls that were not written to their end. */
  abandon(turnId: string): void {
    for (const [toolCallId, of] of this.#announced) {
      if (of !== turnId) continue;
      this.#announced.delete(toolCallId);
      this.#emit({ sessionUpdate: 'tool_call_update', toolCallId, status: 'failed' });
    }
  }

  /** Output of commands is shown a few times a second: each time the editor gets all of it. */
  output(turnId: string, itemId: string, delta: string): void {
    const callId = this.#commands.get(this.#key(turnId, itemId)) ?? '';
    const call = this.#calls.get(callId);
    if (!call || delta === '') return;
    call.output = (call.output + delta).slice(-defaults.acp.outputChars);
    this.#growing.add(callId);
    this.#timer ??= setTimeout(() => this.flush(), defaults.acp.outputMs);
  }

  complete(item: Item): void {
    const key = this.#key(item.turnId, item.id);
    if (this.#done.has(key)) return;
    this.#done.add(key);
    switch (item.type) {
      case 'userMessage':
        for (const part of item.input) {
          this.#emit({ sessionUpdate: 'user_message_chunk', messageId: item.id, content: blockOf(part) });
        }
        return;
      case 'agentMessage':
      case 'reasoningContent':
        this.#grow(item);
        return;
      case 'toolCall':
        this.#toolCall(item);
        return;
      case 'approvalRequest':
        this.#status(item.callId, 'pending');
        return;
      case 'approvalResponse':
        if (item.decision.startsWith('accept')) this.#status(item.callId, 'in_progress');
        return;
      case 'toolResult':
        this.#toolResult(item);
        return;
      case 'plan':
        this.#emit({
          sessionUpdate: 'plan',
          entries: item.steps.map(({ step, status }) => ({ content: step, priority: 'medium', status })),
        });
        return;
      // A command's end is its result; notices are sent as they happen; an error ends the prompt.
    }
  }

  /** Shows the new output of commands. */
  flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    for (const toolCallId of this.#growing) {
      const output = this.#calls.get(toolCallId)?.output ?? '';
      const content: ToolCallContent[] = [{ type: 'content', content: text(output) }];
      this.#emit({ sessionUpdate: 'tool_call_update', toolCallId, status: 'in_progress', content });
    }
    this.#growing.clear();
  }

  /** Presentation of a call; undefined when it was not sent. */
  shownCall(callId: string): ShownCall | undefined {
    return this.#calls.get(callId)?.shown;
  }

  /** Sends nothing any more. */
  close(): void {
    clearTimeout(this.#timer);
    this.#growing.clear();
  }

  #toolCall({ callId, tool, arguments: args }: ItemOf<'toolCall'>): void {
    const shown = showCall(tool, args, this.#options.workspacePath);
    this.#calls.set(callId, { shown, output: '' });
    const sessionUpdate = this.#announced.delete(callId) ? 'tool_call_update' : 'tool_call';
    this.#emit({ sessionUpdate, toolCallId: callId, name: tool, status: 'pending', ...shown });
  }

  #toolResult({ callId, tool, outcome, text: words }: ItemOf<'toolResult'>): void {
    this.#growing.delete(callId);
    const shown = this.#calls.get(callId)?.shown;
    const isDone = outcome === 'completed';
    const result: ToolCallContent = { type: 'content', content: text(words.slice(0, defaults.acp.contentChars)) };
    // The changes themselves are more useful than the fact of a change.
    const content = isDone && shown && shown.content.length > 0 ? shown.content : [result];
    const status = isDone ? 'completed' : 'failed';
    const rawOutput = { outcome, text: words.slice(0, defaults.acp.contentChars) };
    const update = { toolCallId: callId, status, content, rawOutput } as const;
    if (shown) this.#emit({ sessionUpdate: 'tool_call_update', ...update });
    else this.#emit({ sessionUpdate: 'tool_call', title: tool, name: tool, ...update });
  }

  #status(toolCallId: string, status: ToolCallStatus): void {
    if (this.#calls.has(toolCallId)) this.#emit({ sessionUpdate: 'tool_call_update', toolCallId, status });
  }

  #open(item: Item): void {
    if (item.type === 'commandExecution') this.begin(item);
    else this.#grow(item);
  }

  #grow(item: Item): void {
    if (item.type !== 'agentMessage' && item.type !== 'reasoningContent') return;
    const rest = item.text.slice(this.#sentChars.get(this.#key(item.turnId, item.id)) ?? 0);
    const kind = item.type === 'agentMessage' ? 'agent_message_chunk' : 'agent_thought_chunk';
    this.#say(kind, item.turnId, item.id, rest);
    if (item.discarded) this.#withdraw(item.turnId, item.id);
  }

  #withdraw(turnId: string, itemId: string): void {
    const kind = this.#sent.get(this.#key(turnId, itemId));
    if (kind === undefined) return;
    this.#sent.delete(this.#key(turnId, itemId));
    this.#emit({ sessionUpdate: kind, messageId: itemId, content: text(withdrawn) });
  }

  #say(sessionUpdate: TextUpdate, turnId: string, messageId: string, delta: string): void {
    if (delta === '') return;
    const key = this.#key(turnId, messageId);
    this.#sentChars.set(key, (this.#sentChars.get(key) ?? 0) + delta.length);
    this.#sent.set(key, sessionUpdate);
    this.#emit({ sessionUpdate, messageId, content: text(delta) });
  }

  #key(turnId: string, itemId: string): string {
    return `${turnId} ${itemId}`;
  }

  #emit(update: SessionUpdate): void {
    this.#options.emit(update);
  }
}

function blockOf(part: InputPart): ContentBlock {
  switch (part.type) {
    case 'text':
      return text(part.text);
    case 'image': {
      const [, mimeType, data] = /^data:([^;,]+);base64,(.*)$/s.exec(part.url) ?? [];
      if (mimeType !== undefined && data !== undefined) return { type: 'image', mimeType, data };
      return { type: 'resource_link', uri: part.url, name: part.url };
    }
    case 'fileRef': {
      const name = part.displayPath ?? part.path;
      return { type: 'resource_link', uri: `file://${encodeURI(part.path)}`, name };
    }
    case 'localImage':
      return { type: 'resource_link', uri: `file://${encodeURI(part.path)}`, name: part.fileName ?? part.path };
    case 'commandRef':
      return text(part.rawText ?? `/${part.name} ${part.argsText ?? ''}`.trim());
    case 'resourceRef':
      return text(`@${part.server}:${part.uri}`);
    case 'skillRef':
      return text(`$${part.name}`);
  }
}
