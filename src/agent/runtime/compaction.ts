import type { Turn } from '../../protocol/index.ts';
import { historyOf, type Images } from '../history.ts';
import { ModelError, type ModelMessage, type ModelProvider } from '../model.ts';
import type { Compaction } from '../thread-store.ts';
import { type ModelUse, streamCounted } from './model-call.ts';

/** Characters of the conversation in the request for a summary; earlier ones are in the previous summary. */
const transcriptChars = 400_000;

/** The demo provider recognises the request by the first words. */
const instruction =
  'Summarise the conversation below for yourself: you will continue with the summary in its place. Keep the goal, decisions and ' +
  'their reasons, names of files and what was changed in them, commands and their outcome, and what is left to do. Facts only.';

export interface CompactOptions {
  readonly provider: ModelProvider;
  readonly model: string | undefined;
  /** Turns since the last summary, oldest first. */
  readonly turns: readonly Turn[];
  readonly earlier: Compaction | undefined;
  /** Number of newest turns that stay unchanged. */
  readonly keepRecentTurns: number;
  readonly signal: AbortSignal;
  readonly onUsed: (use: ModelUse) => void;
}

/**
 * Summarises all turns but the newest.
 * @returns undefined when there is nothing to be summarised
 * @throws ModelError
 */
export async function compact(options: CompactOptions): Promise<Compaction | undefined> {
  const { turns, earlier, keepRecentTurns, provider, model, signal, onUsed } = options;
  const old = turns.slice(0, Math.max(0, turns.length - keepRecentTurns));
  const last = old.at(-1);
  if (!last) return undefined;
  const question = [instruction, ...(earlier ? [`Summary so far:\n${earlier.summary}`] : []), transcriptOf(old)].join(
    '\n\n',
  );
  let summary = '';
  await streamCounted(
    provider,
    { model, messages: [{ role: 'user', content: [{ type: 'text', text: question }] }] },
    (event) => {
      if (event.type === 'text') summary += event.text;
    },
    signal,
    onUsed,
  );
  if (summary.trim() === '') throw new ModelError('upstreamProtocol', 'The model gave no summary of the conversation.');
  return { throughTurnId: last.id, summary: summary.trim(), at: new Date().toISOString() };
}

function transcriptOf(turns: readonly Turn[]): string {
  const text = historyOf(turns).map(line).join('\n');
  return text.length <= transcriptChars ? text : `…${text.slice(-transcriptChars)}`;
}

function line(message: ModelMessage): string {
  if (message.role === 'assistant') {
    const calls = message.toolCalls.map(({ name, arguments: args }) => `[calls ${name} ${args.slice(0, 2_000)}]`);
    return ['Assistant:', message.text, ...calls].join(' ');
  }
  const text =
    'content' in message
      ? message.content.map((part) => (part.type === 'text' ? part.text : '[image]')).join('\n')
      : message.text;
  if (message.role === 'tool') return `[${message.name} answered: ${text.slice(0, 4_000)}]`;
  return `${message.role === 'user' ? 'User' : 'System'}: ${text}`;
}

/** Builds the conversation for a model: the summary in the place of the summarised turns, then the later ones. */
export function conversationOf(
  compaction: Compaction | undefined,
  turns: readonly Pick<Turn, 'items'>[],
  images?: Images,
): ModelMessage[] {
  const messages = historyOf(turns, images);
  if (!compaction) return messages;
  const text = `Summary of the conversation so far:\n${compaction.summary}`;
  return [
    { role: 'user', content: [{ type: 'text', text }] },
    { role: 'assistant', text: 'Understood.', toolCalls: [] },
    ...messages,
  ];
}
