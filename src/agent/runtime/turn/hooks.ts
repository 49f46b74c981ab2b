import type { HookEvent } from '../../../config/index.ts';
import type { InputPart } from '../../../protocol/index.ts';
import { hookContextNotice, promptBlockedNotice, textOf } from '../../history.ts';
import type { HookInput, HookOutcome } from '../../hooks/index.ts';
import type { ToolResult } from '../../tool.ts';
import type { ReviewedCall } from './call-review.ts';
import type { TurnContext } from './context.ts';

/** A hook of the user refused the prompt of a turn. */
export class PromptBlockedError extends Error {
  override readonly name = 'PromptBlockedError';
}

type Facts = Omit<HookInput, 'hook_event_name' | 'session_id' | 'turn_id' | 'cwd' | 'workspace_path'>;

/** Hooks at the moments of one turn. A hook that fails is reported and changes nothing. */
export class TurnHooks {
  readonly #turn: TurnContext;

  constructor(turn: TurnContext) {
    this.#turn = turn;
  }

  /** @returns words of the hooks for a new conversation; empty: none */
  async startSession(signal: AbortSignal): Promise<string> {
    const { context } = await this.#run('SessionStart', {}, signal);
    return context.join('\n\n');
  }

  /**
   * Shows a prompt to the hooks; its item is the latest one. The output of the hooks becomes an item after it.
   *
   * @returns the output of the hooks; empty: none
   * @throws PromptBlockedError
   */
  async submitPrompt(input: readonly InputPart[], signal: AbortSignal): Promise<string> {
    if (input.length === 0) return '';
    const { items } = this.#turn.record;
    const { context, reasons } = await this.#run('UserPromptSubmit', { prompt: textOf(input) }, signal);
    if (reasons.length > 0) {
      const text = `A hook blocked the prompt: ${this.#clean(reasons)}`;
      items.add({ type: 'systemNotice', kind: promptBlockedNotice, text });
      throw new PromptBlockedError(text);
    }
    const text = this.#clean(context);
    if (text !== '') items.add({ type: 'systemNotice', kind: hookContextNotice, text });
    return text;
  }

  /** Refuses the calls that hooks block, before the user is asked about them. */
  async beforeCalls(calls: readonly ReviewedCall[], signal: AbortSignal): Promise<void> {
    await Promise.all(
      calls.map(async (reviewed) => {
        const { tool, args, refusal } = reviewed;
        if (!tool || refusal !== undefined) return;
        const { reasons } = await this.#run('PreToolUse', { tool_name: tool.name, tool_input: args }, signal);
        if (reasons.length === 0) return;
        reviewed.refusal = `Error: refused by a hook of the user: ${reasons.join('\n')}`;
      }),
    );
  }

  /** @returns a text that the model reads with the result of a call; empty: none */
  async afterCall(
    { tool, args }: ReviewedCall,
    { text, isError = false, exitCode }: ToolResult,
    signal: AbortSignal,
  ): Promise<string> {
    if (!tool) return '';
    const response = { text, is_error: isError, ...(exitCode !== undefined && { exit_code: exitCode }) };
    const facts = { tool_name: tool.name, tool_input: args, tool_response: response };
    const { reasons } = await this.#run('PostToolUse', facts, signal);
    return reasons.map((reason) => `\n\n[hook of the user] ${reason}`).join('');
  }

  /** @param lastMessage last message of the model @returns why the turn continues; empty: it ends */
  async endTurn(lastMessage: string, signal: AbortSignal): Promise<string> {
    const { reasons } = await this.#run('TurnEnd', { last_message: lastMessage }, signal);
    const text = this.#clean(reasons);
    if (text !== '') this.#turn.record.items.add({ type: 'systemNotice', kind: hookContextNotice, text });
    return text;
  }

  async #run(event: HookEvent, facts: Facts, signal: AbortSignal): Promise<HookOutcome> {
    const { services, thread, place, record } = this.#turn;
    const { hooks, workspacePath, clean } = services;
    if (!hooks?.has(event)) return { context: [], reasons: [], failures: [] };
    const { threadId, turnId } = place;
    const about = { session_id: threadId, turn_id: turnId, cwd: thread.workspacePath, workspace_path: workspacePath };
    const outcome = await hooks.run({ hook_event_name: event, ...about, ...facts }, signal);
    for (const failure of outcome.failures) {
      const message = clean(`${event}: ${failure}.`);
      record.publish({ method: 'system/event', params: { ...place, kind: 'hookFailed', message } });
    }
    return outcome;
  }

  #clean(texts: readonly string[]): string {
    return this.#turn.services.clean(texts.join('\n\n'));
  }
}
