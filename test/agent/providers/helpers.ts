/** Asks a provider in a test and stores its response. */
import type { ModelEvent, ModelProvider, ModelRequest } from '../../../src/agent/model.ts';
import { type OpenAiOptions, OpenAiProvider } from '../../../src/agent/providers/openai.ts';

export const apiKey = 'sk-very-secret-0123456789';

export const openAi = (endPoint: string, options: Partial<OpenAiOptions> = {}): OpenAiProvider =>
  new OpenAiProvider({ endPoint, apiKey, model: 'm', ...options });

export const user = (text: string): ModelRequest['messages'][number] => ({
  role: 'user',
  content: [{ type: 'text', text }],
});

export const hi: ModelRequest = { messages: [user('hi')] };

export async function collect(
  provider: Pick<ModelProvider, 'stream'>,
  request: ModelRequest = hi,
  signal: AbortSignal = new AbortController().signal,
): Promise<ModelEvent[]> {
  const events: ModelEvent[] = [];
  await provider.stream(request, (event) => events.push(event), signal);
  return events;
}

/** Joins the texts and calls of events. */
export function answerOf(events: readonly ModelEvent[]) {
  const words = (type: 'text' | 'thinking') =>
    events.flatMap((event) => (event.type === type ? [event.text] : [])).join('');
  const calls = events.flatMap((event) => (event.type === 'toolCall' ? [event.call] : []));
  const last = events.at(-1);
  return {
    text: words('text'),
    thinking: words('thinking'),
    calls,
    usage: events.find((event) => event.type === 'usage'),
    finish: last?.type === 'finish' ? last.reason : undefined,
  };
}

/** Resolves with the error of `work`. */
export const rejection = async (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => undefined,
    (reason: unknown) => reason,
  );
