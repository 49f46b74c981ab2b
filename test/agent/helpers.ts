/** Models whose every word the test decides, and threads that use them. */
import {
  MemoryStore,
  type ModelEvent,
  type ModelProvider,
  type ModelRequest,
  Runtime,
  type RuntimeOptions,
  type RuntimeSettings,
  type ThreadEvent,
  type Tool,
  type ToolContext,
  type ToolResult,
} from '../../src/agent/index.ts';

type Script = (request: ModelRequest, signal: AbortSignal) => AsyncIterable<ModelEvent>;

/** A provider that emits the events of the generator; the `finish` at the end need not be written. */
export function scripted(script: Script): ModelProvider {
  return {
    name: 'scripted',
    model: 'scripted',
    async stream(request, emit, signal) {
      let hasFinished = false;
      for await (const event of script(request, signal)) {
        signal.throwIfAborted();
        hasFinished ||= event.type === 'finish';
        emit(event);
      }
      if (!hasFinished) emit({ type: 'finish', reason: 'stop' });
    },
    listModels: async () => [{ id: 'scripted', ownedBy: 'test' }],
    close: () => undefined,
  };
}

/** Says `text` in one go. */
export const says = (...texts: string[]): ModelProvider =>
  scripted(async function* () {
    for (const text of texts) yield { type: 'text', text };
    yield { type: 'usage', inputTokens: 1, outputTokens: texts.length };
  });

/** Says something and then waits to be interrupted. */
export const neverEnds = (): ModelProvider =>
  scripted(async function* (_, signal) {
    yield { type: 'text', text: 'thinking about it' };
    await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason), { once: true }));
  });

/** An answer that calls a tool. */
export const call = (callId: string, name: string, args: unknown = {}): ModelEvent => ({
  type: 'toolCall',
  call: { callId, name, arguments: typeof args === 'string' ? args : JSON.stringify(args) },
});

/** One answer of the model after the other; the last one for every further request. */
export function answers(...rounds: (readonly ModelEvent[])[]): ModelProvider & { readonly requests: ModelRequest[] } {
  const requests: ModelRequest[] = [];
  const provider = scripted(async function* (request) {
    const round = rounds[Math.min(requests.length, rounds.length - 1)] ?? [];
    requests.push({ ...request, messages: [...request.messages] });
    yield* round;
  });
  return { ...provider, requests };
}

export const say = (text: string): ModelEvent => ({ type: 'text', text });

export interface TestTool {
  readonly name: string;
  readonly isReadOnly?: boolean;
  readonly needsApproval?: boolean;
  readonly run?: (args: Record<string, unknown>, context: ToolContext) => Promise<ToolResult> | ToolResult;
}

/** A tool of the test. Its scope key is `shell:<name>`. */
export function tool({ name, isReadOnly = false, needsApproval = false, run }: TestTool): Tool {
  return {
    name,
    source: 'builtin',
    description: `The test's ${name}.`,
    inputSchema: { type: 'object' },
    isReadOnly,
    parse: (args) =>
      typeof args === 'object' && args !== null ? { ok: true, args } : { ok: false, error: 'an object, please.' },
    approvalFor: async () =>
      needsApproval
        ? { kind: 'shell', operation: 'run', target: name, scopeKey: `shell:${name}`, covers: name }
        : undefined,
    run: async (args, context) =>
      (await run?.(args as Record<string, unknown>, context)) ?? { text: `${name} ran`, isError: false },
  };
}

export const settings: RuntimeSettings = {
  systemPrompt: '',
  maxToolCallRounds: 20,
  maxSessionQueueSize: 3,
  compaction: { isAutomatic: true, contextWindow: 100_000, reserveTokens: 1_000, keepRecentTurns: 2 },
  subAgent: { maxDepth: 1, maxConcurrency: 2, maxToolCallRounds: 5, model: '', exploreModel: '' },
  approvalPolicy: 'default',
  approvalTimeoutMs: 60_000,
  maxRetries: 0,
  quota: { wait: 'never', maxWaitMs: 0 },
  fallbackModels: [],
  budget: { turnUsd: 0, sessionUsd: 0, dayUsd: 0 },
  turns: { resume: 'auto', maxResumes: 3, resumeWithinHours: 24, resumeAgents: false },
};

export function service(
  provider: ModelProvider | (() => Promise<ModelProvider>),
  options: Partial<RuntimeOptions> = {},
) {
  const bugs: unknown[] = [];
  const runtime = new Runtime({
    workspacePath: '/work',
    store: new MemoryStore(),
    provider: typeof provider === 'function' ? provider : async () => provider,
    tools: () => [],
    settings,
    onBug: (error) => {
      bugs.push(error);
      return `bug-${bugs.length}`;
    },
    ...options,
  });
  return { runtime, bugs };
}

/** Hears events and lets the test wait for one. */
export function listening() {
  const events: ThreadEvent[] = [];
  const waiting = new Set<(event: ThreadEvent) => void>();
  const listener = (event: ThreadEvent) => {
    events.push(event);
    for (const check of waiting) check(event);
  };
  /** The `nth` event of this method, from 1. */
  const until = <M extends ThreadEvent['method']>(method: M, nth = 1) =>
    new Promise<Extract<ThreadEvent, { method: M }>>((resolve) => {
      let count = 0;
      const check = (event: ThreadEvent) => {
        if (event.method !== method) return;
        count += 1;
        if (count !== nth) return;
        waiting.delete(check);
        resolve(event as Extract<ThreadEvent, { method: M }>);
      };
      waiting.add(check);
      for (const event of events) check(event);
    });
  return { events, listener, until, methods: () => events.map(({ method }) => method) };
}

export const text = (words: string) => [{ type: 'text' as const, text: words }];

/** Runs one turn to its end and gives it back. */
export async function talk(runtime: Runtime, threadId: string, words: string) {
  const ear = listening();
  runtime.turns.start(threadId, text(words), ear.listener).begin();
  const end = await Promise.race([ear.until('turn/completed'), ear.until('turn/failed'), ear.until('turn/cancelled')]);
  return { turn: end.params.turn, ear };
}
