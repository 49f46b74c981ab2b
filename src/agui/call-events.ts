import type { ItemOf, RpcNotificationParams } from '../protocol/index.ts';
import type { AguiEvent } from './events.ts';

type Writing = RpcNotificationParams<'item/toolCall/argumentsDelta'>;

/** A call that the model is still writing, and the part of it that the client received. */
interface Open {
  readonly tool: string;
  written: string;
}

/**
 * The tool calls of one run as events: piece by piece while the model writes them, and a step while a tool of the server
 * runs. A call is sent in pieces only when its beginning was received.
 */
export class CallEvents {
  readonly #emit: (event: AguiEvent) => void;
  readonly #announced = new Set<string>();
  readonly #open = new Map<string, Open>();
  /** Sent whole, once complete: their beginning was missed, or had no name. */
  readonly #unreported = new Set<string>();
  readonly #steps = new Map<string, string>();
  #hearsBeginnings = true;
  #isAstray = false;

  constructor(emit: (event: AguiEvent) => void) {
    this.#emit = emit;
  }

  /** The client received a beginning without an end: the call was never finished, or became another one. */
  get isAstray(): boolean {
    return this.#isAstray;
  }

  has(callId: string): boolean {
    return this.#announced.has(callId);
  }

  /** Calls that the client knows. Text that the model writes now may have begun before. */
  restate(callIds: readonly string[]): void {
    for (const callId of callIds) this.#announced.add(callId);
    this.#hearsBeginnings = false;
  }

  /** @param parentMessageId the message that the call is part of; asked for when the call begins */
  write({ itemId, tool, delta }: Writing, parentMessageId: () => string): void {
    if (this.#unreported.has(itemId)) return;
    const known = this.#open.get(itemId);
    if (!known && (!this.#hearsBeginnings || tool === '')) {
      this.#unreported.add(itemId);
      return;
    }
    this.#grow(itemId, known ?? this.#begin(itemId, tool, parentMessageId()), delta);
  }

  complete({ callId, tool, source, arguments: args }: ItemOf<'toolCall'>, parentMessageId: string): void {
    const call = this.#open.get(callId) ?? this.#begin(callId, tool, parentMessageId);
    if (call.tool !== tool || !args.startsWith(call.written)) this.#isAstray = true;
    else this.#grow(callId, call, args.slice(call.written.length));
    this.#end(callId);
    if (source === 'client' || this.#steps.has(callId)) return;
    const stepName = `${tool} ${callId}`;
    this.#steps.set(callId, stepName);
    this.#emit({ type: 'STEP_STARTED', stepName });
  }

  /** A result follows the whole answer of the model: its next text begins after this. */
  result({ id, callId, text, outcome, durationMs }: ItemOf<'toolResult'>): void {
    this.#hearsBeginnings = true;
    const metadata = { oratorio: { outcome, ...(durationMs !== undefined && { durationMs }) } };
    this.#emit({ type: 'TOOL_CALL_RESULT', messageId: id, toolCallId: callId, content: text, role: 'tool', metadata });
    this.#finishStep(callId);
  }

  /** Nothing may be open when a run ends. */
  close(): void {
    if (this.#open.size > 0) this.#isAstray = true;
    for (const callId of [...this.#open.keys()]) this.#end(callId);
    for (const callId of [...this.#steps.keys()]) this.#finishStep(callId);
  }

  #begin(callId: string, tool: string, parentMessageId: string): Open {
    const call = { tool, written: '' };
    this.#announced.add(callId);
    this.#open.set(callId, call);
    this.#emit({ type: 'TOOL_CALL_START', toolCallId: callId, toolCallName: tool, parentMessageId });
    return call;
  }

  #grow(callId: string, call: Open, delta: string): void {
    if (delta === '') return;
    call.written += delta;
    this.#emit({ type: 'TOOL_CALL_ARGS', toolCallId: callId, delta });
  }

  #end(callId: string): void {
    this.#open.delete(callId);
    this.#unreported.delete(callId);
    this.#emit({ type: 'TOOL_CALL_END', toolCallId: callId });
  }

  #finishStep(callId: string): void {
    const stepName = this.#steps.get(callId);
    if (stepName === undefined) return;
    this.#steps.delete(callId);
    this.#emit({ type: 'STEP_FINISHED', stepName });
  }
}
