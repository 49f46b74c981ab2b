import type { InputPart, Turn } from '../protocol/index.ts';
import type { ModelMessage } from './model.ts';

/** What a user's message says to a model that reads text only. */
export function textOf(input: readonly InputPart[]): string {
  return input.map(partText).join('\n');
}

function partText(part: InputPart): string {
  switch (part.type) {
    case 'text':
      return part.text;
    case 'commandRef':
      return part.rawText ?? `/${part.name} ${part.argsText ?? ''}`.trim();
    case 'skillRef':
      return `$${part.name}`;
    case 'fileRef':
      return `@${part.displayPath ?? part.path}`;
    case 'image':
      return '[image]';
    case 'localImage':
      return `[image ${part.fileName ?? part.path}]`;
  }
}

/** The conversation of earlier turns, as a model is told it: questions and answers, neither thoughts nor errors. */
export function historyOf(turns: readonly Turn[]): ModelMessage[] {
  return turns.flatMap(({ items }) =>
    items.flatMap((item): ModelMessage[] => {
      if (item.type === 'userMessage') return [{ role: 'user', text: textOf(item.input) }];
      if (item.type === 'agentMessage' && item.text !== '') return [{ role: 'assistant', text: item.text }];
      return [];
    }),
  );
}
