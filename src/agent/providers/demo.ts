import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises';
import type { ModelEvent, ModelInfo, ModelProvider, ModelRequest, ModelToolCall } from '../model.ts';
import { bytesPerToken, estimateTokens } from '../tokens.ts';
import type { Step } from './demo/forms.ts';
import { callFor, type Plan, planOf } from './demo/plan.ts';
import { reportOf } from './demo/report.ts';
import { reviewAnswer } from './demo/review.ts';
import { label } from './demo/talk.ts';

/** Words between two breaks: without a pause, other work of the process must still get its turn. */
const wordsPerBreath = 64;

export interface DemoOptions {
  /** Milliseconds between two words, so that a stream looks like one. Default 12. */
  readonly paceMs?: number;
}

type Emit = (event: ModelEvent) => void;

/**
 * The built-in provider (design §7): no network, no chance, no memory, the same answer to the same request. It follows the
 * sentences of `demo/forms.ts`, calls the tools it is offered and reports their results. Every answer names itself a demo.
 */
export class DemoProvider implements ModelProvider {
  readonly name = 'demo';
  readonly model = 'demo';
  readonly #paceMs: number;

  constructor({ paceMs = 12 }: DemoOptions = {}) {
    this.#paceMs = paceMs;
  }

  async stream(request: ModelRequest, emit: Emit, signal: AbortSignal): Promise<void> {
    let outputBytes = 0;
    const send = (event: ModelEvent) => {
      if (event.type === 'text' || event.type === 'thinking') outputBytes += Buffer.byteLength(event.text);
      else if (event.type === 'toolCall') outputBytes += Buffer.byteLength(event.call.name + event.call.arguments);
      emit(event);
    };
    const { thought, answer, calls } = answerOf(request);
    await this.#speak('thinking', thought, send, signal);
    await this.#speak('text', answer, send, signal);
    for (const [index, call] of calls.entries()) writeCall(index, call, send);
    for (const call of calls) send({ type: 'toolCall', call });
    const inputTokens = estimateTokens(request.messages);
    const outputTokens = Math.ceil(outputBytes / bytesPerToken);
    emit({ type: 'usage', inputTokens, outputTokens, isEstimated: true });
    emit({ type: 'finish', reason: calls.length > 0 ? 'toolCalls' : 'stop' });
  }

  async listModels(): Promise<readonly ModelInfo[]> {
    return [{ id: this.model, ownedBy: 'oratorio' }];
  }

  close(): void {
    // There is no connection.
  }

  async #speak(type: 'text' | 'thinking', text: string, send: Emit, signal: AbortSignal): Promise<void> {
    let spoken = 0;
    for (const [word] of text.matchAll(/\s*\S+|\s+$/g)) {
      spoken += 1;
      if (this.#paceMs > 0) await sleep(this.#paceMs, undefined, { signal });
      else if (spoken % wordsPerBreath === 0) await nextTurn();
      signal.throwIfAborted();
      send({ type, text: word });
    }
  }
}

interface DemoAnswer {
  readonly thought: string;
  readonly answer: string;
  readonly calls: readonly ModelToolCall[];
}

function answerOf(request: ModelRequest): DemoAnswer {
  const review = reviewAnswer(request);
  if (review) return review;
  const plan = planOf(request);
  const { before, next } = nextSteps(plan);
  const thoughts = before.flatMap((step) => (step.kind === 'think' ? [step.text] : []));
  if (next.length === 0) {
    const { thought, answer } = reportOf(plan, request);
    return { thought: [...thoughts, thought].join('\n'), answer, calls: [] };
  }
  const total = plan.steps.length;
  const doing = next.map(({ number, step }) => `Step ${number} of ${total}: ${step.title}.`);
  const said = before.flatMap((step) => (step.kind === 'say' ? [step.text] : []));
  return {
    thought: [label, ...thoughts, ...doing].join('\n'),
    answer: said.length > 0 ? `${label} ${said.join('\n\n')}\n\n` : '',
    calls: next.map(({ number, step }) => callFor(request, number, step)),
  };
}

interface NextCall {
  readonly number: number;
  readonly step: Step & { readonly kind: 'call' };
}

/** The calls to make now, one or several that may run side by side, and the steps without a call before them. */
function nextSteps({ steps, reached, hasFailed }: Plan): { before: readonly Step[]; next: readonly NextCall[] } {
  const before: Step[] = [];
  const next: NextCall[] = [];
  for (const { number, step, isImpossible } of hasFailed ? [] : steps.slice(reached)) {
    if (isImpossible) continue;
    const isParallel = step.kind === 'call' && step.isParallel;
    if (next.length > 0 && !isParallel) break;
    if (step.kind === 'call') next.push({ number, step });
    else before.push(step);
    if (next.length > 0 && !isParallel) break;
  }
  return { before, next };
}

/** Writes a call in pieces, as models do. */
function writeCall(index: number, { callId, name, arguments: args }: ModelToolCall, send: Emit): void {
  for (const [argumentsDelta] of args.matchAll(/[\s\S]{1,24}/gu)) {
    send({ type: 'toolCallDelta', index, callId, name, argumentsDelta });
  }
}
