import { cutText } from './cut-text.ts';
import type { InputPart } from './threads.ts';

/** Most characters of a name that is taken from the first words of a conversation. */
const nameChars = 60;

/** Name of a conversation that has neither a name nor a request. */
const unnamed = 'New conversation';

interface Named {
  readonly displayName?: string | undefined;
  readonly firstInput?: string | null | undefined;
}

/** Display name of a conversation: its own name, or else its first words, or else “New conversation”. */
export const threadName = ({ displayName, firstInput }: Named): string =>
  displayName || firstWords(firstInput ?? '') || unnamed;

/** First line of a request, cut at a word. '' without text. */
export function firstWords(text: string): string {
  const [line = ''] = text.trim().split('\n', 1);
  const trimmed = line.trimEnd();
  if (trimmed.length <= nameChars) return trimmed;
  return `${cutText(trimmed, nameChars).replace(/\s\S*$/, '')}…`;
}

/** Text of a request as its author wrote it, without pictures. */
export const writtenIn = (input: readonly InputPart[]): string =>
  input
    .flatMap((part) => {
      if (part.type === 'text') return [part.text];
      return part.type === 'commandRef' ? [part.rawText ?? `/${part.name} ${part.argsText ?? ''}`] : [];
    })
    .join('\n');
