import { defaults, type ItemOf } from '../../../protocol/index.ts';
import { NestedInstructions } from '../../instructions/index.ts';
import type { ModelToolCall } from '../../model.ts';
import type { RemoteWork, Tool, ToolContext, ToolResult } from '../../tool.ts';
import type { FileChange, StartedCall } from '../../turn-actor-store.ts';
import { timestamp } from '../clock.ts';
import type { TurnApprovals } from './approvals.ts';
import { type AnswerEnd, type ReviewedCall, reviewCall } from './call-review.ts';
import { type CallResult, type MadeResult, outcomeOf, runCalls } from './call-runner.ts';
import type { TurnContext } from './context.ts';
import type { TurnHooks } from './hooks.ts';
import type { TurnItems } from './items.ts';
import { RepeatGuard } from './repeat-guard.ts';
import { type ResumedCall, unknownResult } from './resumption.ts';
import type { SpawningCall } from './thread.ts';

export interface TurnCallsOptions {
  readonly turn: TurnContext;
  readonly approvals: TurnApprovals;
  readonly hooks: TurnHooks;
  /** Texts of the results in the conversation so far. */
  readonly results: () => Iterable<string>;
}

const maxParallelReads = 8;

const asModelCall = ({ callId, tool, arguments: args }: ItemOf<'toolCall'>): ModelToolCall => ({
  ...{ callId, name: tool, arguments: args },
});

/** Kinds of calls by the names of built-in tools; the others are `other`. */
const kinds: Readonly<Record<string, StartedCall['kind']>> = {
  Exec: 'command',
  WriteFile: 'file',
  EditFile: 'file',
  SpawnSubagent: 'subagent',
};
const kindOf = (tool: string): StartedCall['kind'] => kinds[tool] ?? 'other';

/** Rejects with the reason of `signal` when it aborts. */
export const rejectionOf = (signal: AbortSignal): Promise<never> =>
  new Promise((_, reject) => {
    signal.throwIfAborted();
    signal.addEventListener('abort', () => reject(signal.reason), { once: true });
  });

type Command = ReturnType<TurnItems['beginCommand']>;

/** Reviews the tool calls of one answer, requests approvals, runs the calls and reports them. */
export class TurnCalls {
  readonly #turn: TurnContext;
  readonly #options: TurnCallsOptions;
  readonly #commands = new Map<string, { readonly command: Command; length: number }>();
  #calls: readonly ModelToolCall[] = [];
  #toolOf: (name: string) => Tool | undefined = () => undefined;
  #toolNames: readonly string[] = [];
  #end: AnswerEnd | undefined;
  /** Calls of an earlier process, by call id. */
  #resumed: ReadonlyMap<string, ResumedCall> = new Map();
  #reviewed: ReviewedCall[] = [];
  readonly #refusedByGuard = new WeakSet<ReviewedCall>();
  /** Started calls: only their ends are traced. */
  readonly #begun = new WeakSet<ReviewedCall>();
  readonly #started = new Map<string, StartedCall>();
  /** Work of tools after the commit of their results, by call id. */
  readonly #onStored = new Map<string, () => void>();
  readonly #working = new Set<ReviewedCall>();
  /** Present: the turn is being suspended. */
  #held: PromiseWithResolvers<void> | undefined;
  readonly #guard = new RepeatGuard();
  readonly #nested: NestedInstructions | undefined;

  constructor(options: TurnCallsOptions) {
    this.#turn = options.turn;
    this.#options = options;
    const { services, thread } = options.turn;
    const { surroundings } = services;
    const { workspacePath, config } = thread;
    if (surroundings && config.readOnly !== true) {
      this.#nested = new NestedInstructions({ read: surroundings.read, workspacePath, shown: options.results });
    }
  }

  /** Sets the calls without a result of a turn that an earlier process began, after the calls before them. */
  restore(
    calls: readonly ResumedCall[],
    toolOf: (name: string) => Tool | undefined,
    toolNames: readonly string[],
  ): void {
    const items = this.#turn.record.items.snapshot();
    for (const result of items) {
      if (result.type !== 'toolResult') continue;
      const made = items.find((item) => item.type === 'toolCall' && item.callId === result.callId);
      if (made?.type === 'toolCall') this.#guard.note(asModelCall(made), result.text);
    }
    this.take(
      calls.map(({ item }) => asModelCall(item)),
      toolOf,
      toolNames,
      { lastCallId: undefined, limit: undefined },
    );
    this.#resumed = new Map(calls.map((call) => [call.item.callId, call]));
    for (const { item, started } of calls) if (started) this.#started.set(item.callId, started);
  }

  /** Sets the calls of the latest answer. */
  take(
    calls: readonly ModelToolCall[],
    toolOf: (name: string) => Tool | undefined,
    toolNames: readonly string[],
    end: AnswerEnd,
  ): void {
    this.#resumed = new Map();
    this.#end = end;
    this.#calls = calls;
    this.#toolOf = toolOf;
    this.#toolNames = toolNames;
  }

  async review(signal: AbortSignal): Promise<{ readonly pending: readonly string[] }> {
    const { hooks, approvals } = this.#options;
    const { services, thread, policy, isPlanning, canAsk } = this.#turn;
    const { workspacePath, directories, isGranted, config } = thread;
    const { environment, readOnly } = config;
    const about = {
      ...{ workspacePath, directories, environment, policy, isGranted, rules: services.rules, isPlanning, canAsk },
      isReadOnly: readOnly === true,
      end: this.#end,
    };
    const judged = await Promise.all(
      this.#calls.map(
        (call) =>
          this.#startedCall(call) ??
          reviewCall(call, { ...about, toolOf: this.#toolOf, toolNames: () => this.#toolNames }),
      ),
    );
    await hooks.beforeCalls(
      judged.filter(({ wasStarted }) => wasStarted !== true),
      signal,
    );
    this.#reviewed = judged.map((reviewed) => approvals.resumed(reviewed) ?? reviewed);
    for (const [index, reviewed] of this.#reviewed.entries()) {
      if (reviewed.wasStarted) continue;
      this.#refuseRepetition(reviewed);
      if (reviewed !== judged[index]) continue;
      if (reviewed.decision || reviewed.refusal === undefined) approvals.note(reviewed);
    }
    const undecided = this.#reviewed.filter(
      ({ need, decision, refusal }) => need && !decision && refusal === undefined,
    );
    for (const reviewed of undecided) approvals.add(reviewed);
    return { pending: undecided.map(({ requestId }) => requestId) };
  }

  /** Whether a call that is allowed may change files. */
  get mayChangeFiles(): boolean {
    return this.#reviewed.some(
      ({ tool, refusal, known }) =>
        refusal === undefined && !known && tool && !(tool.isReadOnly && tool.source === 'builtin'),
    );
  }

  /** Tool of the first allowed call with effects; undefined: the calls only read. A sub-agent reports the effects of its own calls. */
  get firstWithEffects(): string | undefined {
    return this.#reviewed.find(
      ({ tool, refusal, onlyReads }) =>
        refusal === undefined && tool && !tool.isReadOnly && onlyReads !== true && tool.name !== 'SpawnSubagent',
    )?.tool?.name;
  }

  /**
   * Runs the allowed calls. Returns the results in the order of the calls, a tool that is called again and again in vain, and whether a
   * call was cut off.
   */
  async run(
    signal: AbortSignal,
  ): Promise<{ readonly results: readonly CallResult[]; readonly repeated: string | null; readonly isCut: boolean }> {
    const { services, place, record, thread } = this.#turn;
    const { items } = record;
    const results = new Map<ReviewedCall, CallResult>();
    await runCalls(this.#reviewed, {
      signal,
      concurrency: maxParallelReads,
      contextOf: (reviewed) => this.#contextOf(reviewed, signal),
      onBug: services.onBug,
      clean: services.clean,
      appendixOf: async (reviewed, result) => {
        const instructions = await this.#instructionsFor(reviewed);
        // A hook may have effects, so the result of its call is on disk before it runs.
        const committed = this.#hasHooks ? thread.journal.committed(record) : undefined;
        if (committed) await Promise.race([committed, rejectionOf(signal)]);
        return instructions + (await this.#options.hooks.afterCall(reviewed, result, signal));
      },
      onStart: (reviewed) => this.#start(reviewed),
      admit: (reviewed) => this.#admit(reviewed, signal),
      onReturn: ({ call: { callId } }, result) => {
        const started = this.#started.get(callId);
        if (!started) return;
        // The content of a replaced file shows whether the call is done.
        const saved = started.file ? {} : this.#forHooks(result);
        this.#saveEnd(callId, { ...started, endedAt: timestamp(), ...saved });
      },
      onEnd: (result) => {
        results.set(result.reviewed, result);
        this.#working.delete(result.reviewed);
        this.#checkHeld();
        this.#endCommand(result);
        const { callId, name } = result.reviewed.call;
        const { outcome, text, durationMs } = result;
        const item = items.add<'toolResult'>({ type: 'toolResult', callId, tool: name, outcome, text, durationMs });
        if (result.images.length > 0) this.#saveImages(result);
        const onStored = this.#onStored.get(callId);
        if (onStored) record.afterCommit(onStored);
        if (result.plan) items.add<'plan'>({ type: 'plan', callId, steps: [...result.plan] });
        if (this.#begun.has(result.reviewed)) services.tracer?.toolEnded(place.threadId, item);
      },
    });
    signal.throwIfAborted();
    this.#calls = [];
    const inOrder = this.#reviewed.flatMap((reviewed) => results.get(reviewed) ?? []);
    for (const { reviewed, text } of inOrder) {
      const isUnusable = reviewed.isUnusable === true;
      this.#guard.note(reviewed.call, this.#refusedByGuard.has(reviewed) ? undefined : text, isUnusable);
    }
    const isCut = this.#reviewed.some((reviewed) => reviewed.isCut);
    return { results: inOrder, repeated: this.#guard.stuckTool, isCut };
  }

  #saveEnd(callId: string, call: StartedCall): void {
    this.#started.set(callId, call);
    this.#turn.record.saveCallEnd(callId, call);
  }

  /** Hooks run after calls. */
  get #hasHooks(): boolean {
    return this.#turn.services.hooks?.has('PostToolUse') === true;
  }

  /** Result to save for a tool with hooks, which a kill may interrupt. */
  #forHooks(result: ToolResult): Pick<StartedCall, 'result'> {
    if (!this.#hasHooks) return {};
    const { text, exitCode } = result;
    const { clean } = this.#turn.services;
    return { result: { outcome: outcomeOf(result), text: clean(text), ...(exitCode !== undefined && { exitCode }) } };
  }

  /** Saves the images of a result in one commit with its item. */
  #saveImages({ reviewed: { call, tool }, images }: CallResult): void {
    if (!this.#turn.thread.isResumable) return;
    const { callId } = call;
    this.#saveEnd(callId, { ...(this.#started.get(callId) ?? this.#startOf(call, tool)), images });
  }

  /** Starts no further call. Resolves when the running ones have ended, except commands that are left to the next process. */
  async hold(): Promise<void> {
    this.#held ??= Promise.withResolvers<void>();
    this.#checkHeld();
    await this.#held.promise;
  }

  #checkHeld(): void {
    if (!this.#held) return;
    const { services, place } = this.#turn;
    const isLeft = ({ call: { callId } }: ReviewedCall) =>
      this.#started.get(callId)?.handle !== undefined || services.processes?.isLeft?.({ ...place, callId }) === true;
    if ([...this.#working].every(isLeft)) this.#held.resolve();
  }

  /** The reviewed call of one that an earlier process has started; undefined: that process has not. */
  #startedCall(call: ModelToolCall): ReviewedCall | undefined {
    const { started, known: result } = this.#resumed.get(call.callId) ?? {};
    if (!started) return undefined;
    const tool = this.#toolOf(call.name);
    const known = result ?? (tool || started.handle === undefined ? undefined : unknownResult(call.name));
    const parsed = tool?.parse(JSON.parse(call.arguments));
    return {
      ...{ call, tool, known, wasStarted: true, requestId: '', need: undefined, decision: undefined },
      args: parsed?.ok ? parsed.args : undefined,
      refusal: known || parsed?.ok ? undefined : `Error: there is no tool ${call.name} any more.`,
    };
  }

  /** Resolves when the start of a call with effects is recorded: the next process does not run it again. */
  async #admit(reviewed: ReviewedCall, signal: AbortSignal): Promise<void> {
    if (this.#held) await rejectionOf(signal);
    const { tool, onlyReads, wasStarted } = reviewed;
    // A sub-agent is suspended itself, and its call ends in the next process.
    if (tool && kindOf(tool.name) !== 'subagent') this.#working.add(reviewed);
    if (!tool || tool.isReadOnly || tool.replacesFile || onlyReads || wasStarted) return;
    await this.#saveStart(reviewed, signal);
  }

  #startOf({ callId, name }: ModelToolCall, tool: Tool | undefined): StartedCall {
    return {
      itemId: this.#turn.record.items.last('toolCall', (item) => item.callId === callId)?.id ?? '',
      ...{ startedAt: timestamp(), tool: name, source: tool?.source ?? 'builtin', kind: kindOf(name) },
    };
  }

  async #saveStart({ call, tool }: ReviewedCall, signal: AbortSignal, file?: FileChange): Promise<void> {
    const { record, thread } = this.#turn;
    if (!thread.isResumable) return;
    const { callId } = call;
    const started: StartedCall = { ...this.#startOf(call, tool), file };
    this.#started.set(callId, started);
    await Promise.race([record.saveCall(callId, started), rejectionOf(signal)]);
  }

  /** Instructions of the directories that a call touches. */
  async #instructionsFor({ tool, args }: ReviewedCall): Promise<string> {
    const place = tool?.placeOf?.(args);
    return place === undefined ? '' : ((await this.#nested?.for(place)) ?? '');
  }

  /** Ends the calls that were never run. @param reason for the model @returns their results */
  skip(reason: string): readonly MadeResult[] {
    const { items } = this.#turn.record;
    const skipped = this.#calls;
    this.#calls = [];
    return skipped.map((call) => {
      const { callId, name } = call;
      items.add<'toolResult'>({ type: 'toolResult', callId, tool: name, outcome: 'cancelled', text: reason });
      return { reviewed: { call }, text: reason, images: [] };
    });
  }

  /** Refuses a call that was repeated in vain too often, with the reason as its result. */
  #refuseRepetition(reviewed: ReviewedCall): void {
    const refusal = this.#guard.refusalOf(reviewed.call);
    if (refusal === undefined) return;
    reviewed.refusal ??= refusal;
    this.#refusedByGuard.add(reviewed);
    const { place, record } = this.#turn;
    const message = `${reviewed.call.name} is called with the same arguments over and over, and its result stays the same.`;
    record.publish({ method: 'system/event', params: { ...place, kind: 'repeatedCall', message } });
  }

  #start(reviewed: ReviewedCall): void {
    const { call, refusal, tool, args } = reviewed;
    const { services, place, record } = this.#turn;
    this.#begun.add(reviewed);
    const { callId, name, arguments: text } = call;
    services.tracer?.toolStarted(place, { callId, tool: name, arguments: text, source: tool?.source });
    if (refusal !== undefined || tool?.name !== 'Exec' || tool.source !== 'builtin') return;
    const { command } = args as { readonly command: string };
    const item = record.items.beginCommand(callId, services.clean(command));
    this.#commands.set(callId, { command: item, length: 0 });
  }

  #endCommand({ reviewed, outcome, exitCode }: CallResult): void {
    const { callId } = reviewed.call;
    this.#commands.get(callId)?.command.end({ outcome, ...(exitCode !== undefined && { exitCode }) });
    this.#commands.delete(callId);
  }

  #contextOf(reviewed: ReviewedCall, signal: AbortSignal): ToolContext {
    const { call, hasNetwork, onlyReads, decision } = reviewed;
    const { thread, place, policy } = this.#turn;
    const { approvals } = this.#options;
    return {
      workspacePath: thread.workspacePath,
      directories: thread.directories,
      ...place,
      callId: call.callId,
      wasStarted: reviewed.wasStarted,
      signal,
      hasNetwork,
      onlyReads,
      environment: thread.config.environment,
      answers: decision?.content,
      ...(thread.isResumable && { remote: this.#remoteWork(reviewed) }),
      elicit: (question, withdrawn) => approvals.elicit(question, call, AbortSignal.any([signal, withdrawn])),
      onReplace: (change) => this.#saveStart(reviewed, signal, change),
      onOutput: (text) => this.#output(call.callId, text),
      onStored: (work) => this.#onStored.set(call.callId, work),
      isApproved: (scopeKey) => policy === 'autoApprove' || thread.isGranted(scopeKey),
      spawnSubagent: (order) => thread.spawnSubagent(order, this.#spawningCall(call.callId), signal),
    };
  }

  #remoteWork({ call, tool }: ReviewedCall): RemoteWork {
    const { callId } = call;
    return {
      handle: this.#started.get(callId)?.handle,
      save: (handle) => {
        this.#saveEnd(callId, { ...(this.#started.get(callId) ?? this.#startOf(call, tool)), handle });
        this.#checkHeld();
      },
      isLeft: () => this.#held !== undefined,
    };
  }

  #spawningCall(callId: string): SpawningCall {
    const { thread, place } = this.#turn;
    const started = this.#started.get(callId);
    return {
      callId,
      started: started?.subagent,
      saveStart: (subagent) => {
        if (!started) return;
        const call = { ...started, subagent };
        thread.store.turnActors.putCall(place.threadId, place.turnId, callId, call);
        this.#started.set(callId, call);
      },
    };
  }

  /** Appends output up to the limit of the item; the result for the model names the omitted part. */
  #output(callId: string, text: string): void {
    const open = this.#commands.get(callId);
    if (!open || open.length >= defaults.agent.commandOutputChars) return;
    const piece = text.slice(0, defaults.agent.commandOutputChars - open.length);
    open.length += piece.length;
    open.command.append(this.#turn.services.clean(piece));
  }
}
