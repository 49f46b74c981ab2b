import type { Turn } from '../../protocol/index.ts';
import { type Additions, historyOf } from '../history.ts';
import type { ModelMessage } from '../model.ts';
import type { Compaction } from '../thread-store.ts';

/**
 * Builds the conversation for a model: for summarised turns the user's requests word for word and the summary,
 * then all later turns.
 * @param turns turns that the compaction does not cover
 */
export function conversationOf(
  compaction: Compaction | undefined,
  turns: readonly Pick<Turn, 'items'>[],
  additions?: Additions,
): ModelMessage[] {
  const messages = historyOf(turns, additions);
  if (!compaction) return messages;
  const { requests = [], summary } = compaction;
  const text = [
    ...(requests.length > 0 ? ['Requests of the user so far, word for word:', ...requests] : []),
    `Summary of the conversation so far:\n${summary}`,
  ].join('\n\n');
  const head: ModelMessage = { role: 'user', content: [{ type: 'text', text }] };
  // Answers follow requests: services refuse two requests in a row, and an answer to none.
  const isRequestNext = messages[0]?.role === 'user';
  return isRequestNext
    ? [head, { role: 'assistant', text: 'Understood.', toolCalls: [] }, ...messages]
    : [head, ...messages];
}
