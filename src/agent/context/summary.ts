import type { Item } from '../../protocol/index.ts';
import { messagesOf, textOf } from '../history.ts';
import { ModelError, type ModelMessage, type ModelProvider } from '../model.ts';
import { type ModelUse, streamCounted } from '../model-call.ts';

/** The demo provider recognises the request by the first words. */
const instruction = `Summarise the conversation below for yourself: you will continue with the summary in its place, and with the user's own
requests, which stay word for word. Write these sections, facts only:
Goal. Constraints (requests and exclusions of the user). Done (names of files and their changes, commands and their
outcome). Under way (the step that was interrupted, exactly). Decisions and their reasons. Next steps.`;

/** Limits of the summary: in tokens, and as a share of its largest input. */
const summaryTokens = 4_096;
const summaryShare = 1 / 8;
/** Characters of one result, and of the arguments of one call, in the transcript. */
const resultChars = 600;
const argumentChars = 600;
/** Files that the summary names at most. */
const maxFiles = 100;

export interface SummaryOptions {
  readonly provider: ModelProvider;
  readonly model: string | undefined;
  /** Items to summarise. */
  readonly items: readonly Item[];
  /** Summary of everything before them. */
  readonly earlier: string | undefined;
  /** Longest transcript in the request, in bytes. */
  readonly transcriptBytes: number;
  readonly signal: AbortSignal;
  readonly onUsed: (use: ModelUse) => void;
}

/** Asks the model for a summary. @throws ModelError */
export async function summarise(options: SummaryOptions): Promise<string> {
  const { provider, model, items, earlier, transcriptBytes, signal, onUsed } = options;
  const question = [
    instruction,
    ...(earlier === undefined ? [] : [`Summary so far:\n${earlier}`]),
    transcriptOf(items, transcriptBytes),
  ].join('\n\n');
  let summary = '';
  await streamCounted(
    provider,
    {
      model,
      messages: [{ role: 'user', content: [{ type: 'text', text: question }] }],
      maxOutputTokens: Math.min(summaryTokens, Math.ceil(transcriptBytes * summaryShare)),
    },
    (event) => {
      if (event.type === 'text') summary += event.text;
      else if (event.type === 'textWasThinking') summary = '';
    },
    signal,
    { onUsed },
  );
  if (summary.trim() === '') throw new ModelError('upstreamProtocol', 'The model gave no summary of the conversation.');
  return [summary.trim().toWellFormed(), filesOf(items)].filter((text) => text !== '').join('\n\n');
}

/** The end of a transcript is worth more than its beginning, which an earlier summary may hold. */
function transcriptOf(items: readonly Item[], maxBytes: number): string {
  const text = messagesOf(items).map(line).join('\n');
  return text.length <= maxBytes ? text : `…${text.slice(-maxBytes)}`;
}

function line(message: ModelMessage): string {
  if (message.role === 'assistant') {
    const calls = message.toolCalls.map(
      ({ name, arguments: args }) => `[calls ${name} ${args.slice(0, argumentChars)}]`,
    );
    return ['Assistant:', message.text, ...calls].join(' ');
  }
  if (message.role === 'system') return `System: ${message.text}`;
  const text = message.content.map((part) => (part.type === 'text' ? part.text : '[image]')).join('\n');
  if (message.role === 'user') return `User: ${text}`;
  return `[${message.name} answered: ${clipped(text)}]`;
}

const clipped = (text: string): string =>
  text.length <= resultChars ? text : `${text.slice(0, resultChars / 2)} … ${text.slice(-resultChars / 2)}`;

/** Files that calls have read and changed: a model forgets some of them. */
function filesOf(items: readonly Item[]): string {
  const read = new Set<string>();
  const changed = new Set<string>();
  for (const item of items) {
    if (item.type !== 'toolCall') continue;
    const path = /"(?:file_?)?path"\s*:\s*"((?:[^"\\]|\\.)*)"/i.exec(item.arguments)?.[1];
    if (path === undefined) continue;
    if (item.tool === 'WriteFile' || item.tool === 'EditFile') changed.add(path);
    else if (item.tool === 'ReadFile') read.add(path);
  }
  const lines = [
    ['Files changed', changed],
    ['Files read', new Set([...read].filter((path) => !changed.has(path)))],
  ] as const;
  return lines
    .flatMap(([title, files]) => (files.size > 0 ? [`${title}: ${[...files].slice(-maxFiles).join(', ')}`] : []))
    .join('\n');
}

/**
 * Requests of users that stay verbatim: all of the running turn, and the newest older ones.
 * @param earlier those that earlier summaries cover
 * @param olderBytes room for the older ones
 */
export function requestsOf(
  items: readonly Item[],
  earlier: readonly string[],
  isOfRunningTurn: (item: Item) => boolean,
  olderBytes: number,
): readonly string[] {
  const now = items.flatMap((item) => (item.type === 'userMessage' ? [{ item, text: textOf(item.input) }] : []));
  const older = [...earlier, ...now.flatMap(({ item, text }) => (isOfRunningTurn(item) ? [] : [text]))];
  const running = now.flatMap(({ item, text }) => (isOfRunningTurn(item) ? [text] : []));
  let room = olderBytes;
  const kept = older.toReversed().filter((text) => {
    room -= Buffer.byteLength(text);
    return room >= 0;
  });
  return [...kept.toReversed(), ...running];
}
