import type { ModelRequest, ModelTool, ModelToolCall } from '../../model.ts';
import { beginsStep, type Step, stepOf } from './forms.ts';
import { sample } from './sample.ts';
import { pieces } from './split.ts';

/** Longer messages are not searched for steps. */
const longestPlan = 1_048_576;
const mostSteps = 50;
const callId = /_(\d+)$/;

/** A step and its outcome. */
export interface PlannedStep {
  /** Number of the step, from 1. */
  readonly number: number;
  readonly step: Step;
  /** The tool it needs is not offered. */
  readonly isImpossible: boolean;
  readonly call: ModelToolCall | undefined;
  /** Undefined: not yet, or lost. */
  readonly result: string | undefined;
}

/** Steps that the user requests, with their progress. */
export interface Plan {
  /** The words of the last user message. */
  readonly asked: string;
  readonly images: number;
  readonly steps: readonly PlannedStep[];
  /** Lines that are not steps, in a message with steps. */
  readonly leftOut: readonly string[];
  /** Number of the last step that a call was made for. */
  readonly reached: number;
  readonly hasFailed: boolean;
}

/**
 * Makes the plan from the request alone, without a memory: the steps from the last user message, their
 * results from the calls and results behind it. The id of a call names its step.
 */
export function planOf(request: ModelRequest): Plan {
  const { messages } = request;
  const at = messages.findLastIndex(({ role }) => role === 'user');
  const question = messages[at];
  const content = question?.role === 'user' ? question.content : [];
  const asked = content.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join('\n');
  const images = content.filter(({ type }) => type === 'image').length;
  const { steps, leftOut } = stepsIn(asked, request);
  const { calls, results } = doneSince(request, at + 1);
  const planned = steps.map((step, index) => {
    const call = calls.get(index + 1);
    const isImpossible = step.kind === 'call' && !call && !toolOf(request, step.tool);
    return { number: index + 1, step, isImpossible, call, result: call && results.get(call.callId) };
  });
  const reached = Math.max(0, ...calls.keys());
  return { asked, images, steps: planned, leftOut, reached, hasFailed: planned.some(isFailed) };
}

function stepsIn(asked: string, request: ModelRequest): { steps: readonly Step[]; leftOut: readonly string[] } {
  const found = asked.length > longestPlan || isEcho(asked) ? [] : pieces(asked, beginsStep);
  const all = found.map((piece) => ({ piece, step: stepOf(piece) }));
  const steps = all.flatMap(({ step }) => step ?? []).slice(0, mostSteps);
  const demanded = steps.some(({ kind }) => kind === 'call') ? undefined : demandedStep(request, asked);
  const leftOut = all.flatMap(({ piece, step }) => (step ? [] : [piece]));
  return { steps: demanded ? [...steps, demanded] : steps, leftOut: steps.length > 0 ? leftOut : [] };
}

const isEcho = (asked: string): boolean => /^\s*echo\s/i.test(asked);

/** A request that insists on a call gets one, filled in by its schema. */
function demandedStep(request: ModelRequest, asked: string): Step | undefined {
  const { toolChoice, tools } = request;
  const name = typeof toolChoice === 'object' ? toolChoice.name : toolChoice === 'required' ? tools?.[0]?.name : '';
  const tool = name ? toolOf(request, name) : undefined;
  if (!tool) return undefined;
  const json = JSON.stringify(sample(tool.inputSchema, asked));
  return { kind: 'call', title: `call ${tool.name}`, tool: tool.name, arguments: [], json, isParallel: false };
}

/** The tool of this name, if it may be called. */
export function toolOf({ tools, toolChoice }: ModelRequest, name: string): ModelTool | undefined {
  return toolChoice === 'none' ? undefined : tools?.find((tool) => tool.name.toLowerCase() === name.toLowerCase());
}

function doneSince({ messages }: ModelRequest, from: number) {
  const calls = new Map<number, ModelToolCall>();
  const results = new Map<string, string>();
  for (const message of messages.slice(from)) {
    if (message.role === 'assistant') {
      for (const call of message.toolCalls) calls.set(Number(callId.exec(call.callId)?.[1] ?? 0), call);
    } else if (message.role === 'tool') {
      const words = message.content.map((part) => (part.type === 'text' ? part.text : '[image]'));
      results.set(message.callId, words.join('\n'));
    }
  }
  return { calls, results };
}

/** Tools begin an error with `Error:`; Exec ends with a note when a command failed. */
export function isFailed({ step, result }: PlannedStep): boolean {
  if (step.kind !== 'call' || result === undefined) return false;
  return (
    result.startsWith('Error:') ||
    (step.tool === 'Exec' && /^(?:Exit code |The command was ended )/m.test(lastPart(result)))
  );
}

const lastPart = (result: string): string => result.trimEnd().split('\n\n').at(-1) ?? '';

/** The call that a step makes; `made` is how many messages the conversation had: ids must not come twice. */
export function callFor(request: ModelRequest, number: number, step: Step & { kind: 'call' }): ModelToolCall {
  const tool = toolOf(request, step.tool);
  return {
    callId: `call_demo_${request.messages.length}_${number}`,
    name: tool?.name ?? step.tool,
    arguments: step.json ?? JSON.stringify(argumentsOf(step, tool)),
  };
}

function argumentsOf(step: Step & { kind: 'call' }, tool: ModelTool | undefined): Record<string, unknown> {
  const known = (tool?.inputSchema['properties'] ?? {}) as Readonly<Record<string, unknown>>;
  return Object.fromEntries(
    step.arguments.map(([names, value]) => [names.find((name) => Object.hasOwn(known, name)) ?? names[0], value]),
  );
}
