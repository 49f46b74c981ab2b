/** A client of our own providers that runs the tool of the scripts, as the runtime does. */
import type {
  ModelEvent,
  ModelMessage,
  ModelProvider,
  ModelRequest,
  ModelState,
  ModelTool,
} from '../../src/agent/model.ts';
import { lookUp, toolName, toolSchema } from './script.ts';

export const tool: ModelTool = { name: toolName, description: 'Looks a key up.', inputSchema: toolSchema };

export const user = (text: string): ModelMessage => ({ role: 'user', content: [{ type: 'text', text }] });

/** One answer, taken apart. */
export interface Heard {
  readonly text: string;
  readonly thinking: string;
  readonly calls: readonly { readonly callId: string; readonly name: string; readonly arguments: string }[];
  readonly state: ModelState | undefined;
  readonly usage: Extract<ModelEvent, { type: 'usage' }> | undefined;
  readonly finish: string | undefined;
}

export async function ask(
  provider: Pick<ModelProvider, 'stream'>,
  request: ModelRequest,
  signal: AbortSignal = new AbortController().signal,
): Promise<Heard> {
  const events: ModelEvent[] = [];
  await provider.stream(request, (event) => events.push(event), signal);
  const only = <T extends ModelEvent['type']>(type: T) =>
    events.filter((event): event is Extract<ModelEvent, { type: T }> => event.type === type);
  return {
    text: only('text')
      .map(({ text }) => text)
      .join(''),
    thinking: only('thinking')
      .map(({ text }) => text)
      .join(''),
    calls: only('toolCall').map(({ call }) => call),
    state: only('state')[0]?.state,
    usage: only('usage')[0],
    finish: only('finish')[0]?.reason,
  };
}

/** The conversation after an answer, with the results of its calls. */
export function continued(messages: readonly ModelMessage[], { text, calls, state }: Heard): ModelMessage[] {
  return [
    ...messages,
    { role: 'assistant', text, toolCalls: calls, ...(state && { state: structuredClone(state) }) },
    ...calls.map((call): ModelMessage => {
      const { key } = JSON.parse(call.arguments) as { key: string };
      return { role: 'tool', callId: call.callId, name: call.name, content: [{ type: 'text', text: lookUp(key) }] };
    }),
  ];
}

/** Asks until an answer makes no call. */
export async function converse(
  provider: Pick<ModelProvider, 'stream'>,
  messages: readonly ModelMessage[],
  options: Omit<ModelRequest, 'messages'> = {},
): Promise<{ readonly messages: readonly ModelMessage[]; readonly last: Heard; readonly rounds: readonly Heard[] }> {
  let conversation = [...messages];
  const rounds: Heard[] = [];
  for (;;) {
    const heard = await ask(provider, { tools: [tool], ...options, messages: conversation });
    conversation = continued(conversation, heard);
    rounds.push(heard);
    if (heard.calls.length === 0) return { messages: conversation, last: heard, rounds };
  }
}
