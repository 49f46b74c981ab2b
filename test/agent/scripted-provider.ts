/**
 * A model whose every word a test decides, behind the interface of the real ones:
 *
 *     const provider = script(callTool('ReadFile', { path: 'a.txt' }), say('It is empty.'));
 *
 * Each argument is one answer: a step, a list of steps, or a function of the request. A request for which no answer is
 * left fails. `provider.requests` holds the requests to the model.
 */
import {
  ModelError,
  type ModelErrorCode,
  type ModelEvent,
  type ModelInfo,
  type ModelProvider,
  type ModelRequest,
} from '../../src/agent/model.ts';

/** Holds the model up until the test opens it. */
export interface Gate {
  readonly type: 'gate';
  /** Resolves when the model has come to it. */
  readonly reached: Promise<void>;
  open(): void;
  readonly opened: Promise<void>;
  arrive(): void;
}

interface Failure {
  readonly type: 'fail';
  readonly error: unknown;
}

/** One thing that a scripted model does. */
export type ScriptStep =
  | ModelEvent
  | Gate
  | Failure
  | { readonly type: 'call'; readonly name: string; readonly args: unknown; readonly callId?: string | undefined };
export type ScriptAnswer =
  | ScriptStep
  | readonly ScriptStep[]
  | ((request: ModelRequest, signal: AbortSignal) => ScriptStep | readonly ScriptStep[]);

export class ScriptedProvider implements ModelProvider {
  readonly name = 'scripted';
  readonly model = 'scripted';
  readonly requests: ModelRequest[] = [];
  /** True after its owner has closed it. */
  isClosed = false;
  readonly #answers: readonly ScriptAnswer[];
  readonly #isEndless: boolean;
  readonly #asked = new Set<() => void>();

  /** `isEndless`: the last answer is given again and again. */
  constructor(answers: readonly ScriptAnswer[], isEndless = false) {
    this.#answers = answers;
    this.#isEndless = isEndless;
  }

  async stream(request: ModelRequest, emit: (event: ModelEvent) => void, signal: AbortSignal): Promise<void> {
    // A copy, because the conversation changes later.
    this.requests.push({ ...request, messages: structuredClone(request.messages) });
    for (const listener of this.#asked) listener();
    const number = this.requests.length - 1;
    const answer = this.#answers[number] ?? (this.#isEndless ? this.#answers.at(-1) : undefined);
    if (answer === undefined) throw new Error(`The script has no answer number ${number + 1}.`);
    const steps = typeof answer === 'function' ? answer(request, signal) : answer;
    await play('type' in steps ? [steps] : steps, number, emit, signal);
  }

  async listModels(): Promise<readonly ModelInfo[]> {
    return [{ id: this.model, ownedBy: 'test' }];
  }

  close(): void {
    this.isClosed = true;
  }

  /** Resolves when the model has been asked `count` times. */
  untilAsked(count: number): Promise<void> {
    return new Promise((resolve) => {
      const check = () => {
        if (this.requests.length < count) return;
        this.#asked.delete(check);
        resolve();
      };
      this.#asked.add(check);
      check();
    });
  }
}

/** A model that gives these answers, one for each request. */
export const script = (...answers: readonly ScriptAnswer[]): ScriptedProvider => new ScriptedProvider(answers);

/** A model that gives this answer to every request. */
export const always = (answer: ScriptAnswer): ScriptedProvider => new ScriptedProvider([answer], true);

export const say = (text: string): ScriptStep => ({ type: 'text', text });
export const think = (text: string): ScriptStep => ({ type: 'thinking', text });
/** A whole call, its arguments written in pieces. A string is taken unchanged, including broken JSON. */
export const callTool = (name: string, args: unknown = {}, callId?: string): ScriptStep => ({
  type: 'call',
  name,
  args,
  callId,
});
export const usage = (inputTokens: number, outputTokens: number): ScriptStep => ({
  type: 'usage',
  inputTokens,
  outputTokens,
});
/** Needed only where the reason differs from that of the answer's content. Nothing may follow it. */
export const finish = (reason: Extract<ModelEvent, { type: 'finish' }>['reason']): ScriptStep => ({
  type: 'finish',
  reason,
});
/** Throws a `ModelError`. */
export const fail = (code: ModelErrorCode, message = 'as the script says', retryAfterMs?: number): ScriptStep => ({
  type: 'fail',
  error: new ModelError(code, message, { retryAfterMs }),
});
/** Throws anything. */
export const crash = (error: unknown): ScriptStep => ({ type: 'fail', error });

/** Stays closed until `open`; an abort passes it by rejecting. */
export function gate(): Gate {
  const [reached, opened] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  return {
    type: 'gate',
    reached: reached.promise,
    opened: opened.promise,
    arrive: reached.resolve,
    open: opened.resolve,
  };
}

async function play(
  steps: readonly ScriptStep[],
  answer: number,
  emit: (event: ModelEvent) => void,
  signal: AbortSignal,
): Promise<void> {
  const calls: Extract<ModelEvent, { type: 'toolCall' }>[] = [];
  const emitted = new Set<ModelEvent['type']>();
  const send = (event: ModelEvent) => {
    emitted.add(event.type);
    emit(event);
  };
  for (const step of steps) {
    signal.throwIfAborted();
    if (step.type === 'gate') await pass(step, signal);
    else if (step.type === 'fail') throw step.error;
    else if (step.type === 'call') calls.push(writeCall(step, calls.length, answer, send));
    else send(step);
  }
  for (const call of calls) send(call);
  if (!emitted.has('usage')) send({ type: 'usage', inputTokens: 1, outputTokens: 1 });
  if (!emitted.has('finish')) send({ type: 'finish', reason: emitted.has('toolCall') ? 'toolCalls' : 'stop' });
}

async function pass(gate: Gate, signal: AbortSignal): Promise<void> {
  gate.arrive();
  const aborted = Promise.withResolvers<never>();
  const abort = () => aborted.reject(signal.reason);
  signal.addEventListener('abort', abort, { once: true });
  try {
    await Promise.race([gate.opened, aborted.promise]);
  } finally {
    signal.removeEventListener('abort', abort);
  }
}

function writeCall(
  { name, args, callId = '' }: Extract<ScriptStep, { type: 'call' }>,
  index: number,
  answer: number,
  send: (event: ModelEvent) => void,
): Extract<ModelEvent, { type: 'toolCall' }> {
  const id = callId || `call_${answer + 1}_${index + 1}`;
  const text = typeof args === 'string' ? args : JSON.stringify(args);
  for (const [argumentsDelta] of text.matchAll(/[\s\S]{1,8}/gu)) {
    send({ type: 'toolCallDelta', index, callId: id, name, argumentsDelta });
  }
  return { type: 'toolCall', call: { callId: id, name, arguments: text } };
}
