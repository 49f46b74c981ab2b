import { defaults, type ToolOutcome } from '../../../protocol/index.ts';
import type { ContentPart } from '../../model.ts';
import type { Tool, ToolContext, ToolResult } from '../../tool.ts';
import type { ReviewedCall } from './call-review.ts';

/** End of a call, with the text for the model. */
export interface CallResult {
  readonly reviewed: ReviewedCall;
  readonly outcome: ToolOutcome;
  readonly text: string;
  readonly images: readonly ContentPart[];
  readonly plan: ToolResult['plan'];
  readonly exitCode: number | undefined;
  readonly durationMs: number;
}

/** Result as the conversation takes it in. */
export type MadeResult = Pick<CallResult, 'text' | 'images'> & { readonly reviewed: Pick<ReviewedCall, 'call'> };

export interface RunCallsOptions {
  readonly contextOf: (reviewed: ReviewedCall) => ToolContext;
  /** Limit of parallel calls. */
  readonly concurrency: number;
  /** Text to append to the result of a call that has run. */
  readonly appendixOf: (reviewed: ReviewedCall, result: ToolResult) => Promise<string>;
  /** Redacts secrets, before the text is cut: half a secret would not be recognised. */
  readonly clean: (text: string) => string;
  readonly onStart: (reviewed: ReviewedCall) => void;
  /** Resolves when the tool of an allowed call may run. Rejects when the turn is interrupted. */
  readonly admit: (reviewed: ReviewedCall) => Promise<void>;
  /** Called when the tool has returned, before hooks and the result. */
  readonly onReturn: (reviewed: ReviewedCall, result: ToolResult) => void;
  readonly onEnd: (result: CallResult) => void;
  /** Logs an error of a tool; returns its id in the log. */
  readonly onBug: (error: unknown) => string;
  readonly signal: AbortSignal;
}

/**
 * Runs calls in the order of the model: adjacent reading calls in parallel, each of the others alone. Resolves when all
 * have ended; a call that was not started when `signal` aborted is `cancelled`.
 */
export async function runCalls(calls: readonly ReviewedCall[], options: RunCallsOptions): Promise<void> {
  for (const group of groupsOf(calls, options.concurrency)) {
    await Promise.all(group.map((reviewed) => runCall(reviewed, options)));
  }
}

function isParallel({ tool, refusal }: ReviewedCall): boolean {
  return refusal !== undefined || tool?.isReadOnly === true || tool?.name === 'SpawnSubagent';
}

function groupsOf(calls: readonly ReviewedCall[], limit: number): ReviewedCall[][] {
  const groups: ReviewedCall[][] = [];
  let isOpen = false;
  for (const call of calls) {
    const parallel = isParallel(call);
    const last = groups.at(-1);
    if (last && isOpen && parallel && last.length < limit) last.push(call);
    else groups.push([call]);
    isOpen = parallel;
  }
  return groups;
}

async function runCall(reviewed: ReviewedCall, options: RunCallsOptions): Promise<void> {
  const { signal, onStart, onEnd } = options;
  const began = performance.now();
  const end = (outcome: ToolOutcome, { text, images = [], plan, exitCode }: Partial<ToolResult>, appendix = '') =>
    onEnd({
      reviewed,
      outcome,
      text: bounded(options.clean(text ?? '')) + options.clean(appendix),
      images,
      plan,
      exitCode,
      durationMs: Math.round(performance.now() - began),
    });
  if (signal.aborted) return end('cancelled', { text: 'Error: the turn was interrupted.' });
  const { tool, refusal, decision, known } = reviewed;
  if (known && (known.outcome === 'unknown' || !tool)) return end(known.outcome, known);
  if (refusal !== undefined || !tool) {
    onStart(reviewed);
    return end(decision?.word === undefined || decision.word === 'accept' ? 'failed' : 'declined', {
      text: refusal ?? '',
    });
  }
  try {
    const result = known ? { ...known, isError: known.outcome !== 'completed' } : await run(reviewed, tool, options);
    // Hooks of a finished call may have ended with their process.
    const appendix = await options.appendixOf(reviewed, result);
    end(outcomeOf(result), result, appendix);
  } catch (error) {
    if (signal.aborted) return end('cancelled', { text: 'Error: the turn was interrupted.' });
    const errorId = options.onBug(error);
    end('failed', { text: `Error: ${tool.name} failed because of a bug (${errorId} in the log of the agent server).` });
  }
}

async function run(reviewed: ReviewedCall, tool: Tool, options: RunCallsOptions): Promise<ToolResult> {
  await options.admit(reviewed);
  options.onStart(reviewed);
  const result = await tool.run(reviewed.args, options.contextOf(reviewed));
  options.onReturn(reviewed, result);
  return result;
}

export const outcomeOf = ({ isError, isUnknown }: ToolResult): ToolOutcome =>
  isUnknown ? 'unknown' : isError ? 'failed' : 'completed';

function bounded(text: string): string {
  const limit = defaults.agent.toolResultChars;
  if (text.length <= limit) return text;
  return `${text.slice(0, limit)}\n… (${text.length - limit} of ${text.length} characters left out; ask for less)`;
}
