/** Models whose every word the test decides, and threads that use them. */
import {
  MemoryThreadStore,
  type ModelEvent,
  type ModelProvider,
  type ModelRequest,
  type ThreadEvent,
  ThreadService,
} from '../../src/agent/index.ts';

type Script = (request: ModelRequest, signal: AbortSignal) => AsyncIterable<ModelEvent>;

export function scripted(stream: Script): ModelProvider {
  return { name: 'scripted', model: 'scripted', stream, listModels: async () => [{ id: 'scripted', ownedBy: 'test' }] };
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

export function service(provider: ModelProvider | (() => Promise<ModelProvider>)) {
  const bugs: unknown[] = [];
  const threads = new ThreadService({
    workspacePath: '/work',
    store: new MemoryThreadStore(),
    provider: typeof provider === 'function' ? provider : async () => provider,
    onBug: (error) => bugs.push(error),
  });
  return { threads, bugs };
}

/** Hears events and lets the test wait for one. */
export function listening() {
  const events: ThreadEvent[] = [];
  const waiting = new Set<() => void>();
  const listener = (event: ThreadEvent) => {
    events.push(event);
    for (const check of waiting) check();
  };
  const until = (method: ThreadEvent['method']) =>
    new Promise<ThreadEvent>((resolve) => {
      const check = () => {
        const found = events.find((event) => event.method === method);
        if (!found) return;
        waiting.delete(check);
        resolve(found);
      };
      waiting.add(check);
      check();
    });
  return { events, listener, until, methods: () => events.map(({ method }) => method) };
}

export const text = (words: string) => [{ type: 'text' as const, text: words }];
