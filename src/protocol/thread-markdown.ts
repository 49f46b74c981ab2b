import { threadName, writtenIn } from './thread-name.ts';
import type { Item, Thread } from './threads.ts';

/** Turns to read at a time. */
const pageTurns = 200;

type ReadRange = {
  readonly threadId: string;
  readonly includeTurns: true;
  readonly turnLimit: number;
  readonly beforeTurnId?: string;
};

/** Reads a thread with all its turns, in parts that fit a frame. */
export async function wholeThread(
  threadId: string,
  read: (range: ReadRange) => Promise<{ readonly thread: Thread }>,
): Promise<Thread> {
  const range = { threadId, includeTurns: true, turnLimit: pageTurns } as const;
  const { thread } = await read(range);
  let turns = thread.turns ?? [];
  for (let isWhole = !thread.hasOlderTurns; !isWhole; ) {
    const [first] = turns;
    if (!first) break;
    const { thread: older } = await read({ ...range, beforeTurnId: first.id });
    turns = [...(older.turns ?? []), ...turns];
    isWhole = !older.hasOlderTurns;
  }
  return { ...thread, turns };
}

/** A conversation as Markdown: its name, each message under a heading, and the number of calls between messages. */
export function threadMarkdown({ displayName, firstInput, turns = [] }: Thread): string {
  const parts = [`# ${threadName({ displayName, firstInput })}`];
  for (const { items } of turns) {
    let calls = 0;
    for (const item of items) {
      if (item.type === 'toolCall') calls += 1;
      const text = itemMarkdown(item);
      if (text === '') continue;
      if (calls > 0) parts.push(callsMarkdown(calls));
      calls = 0;
      parts.push(text);
    }
    if (calls > 0) parts.push(callsMarkdown(calls));
  }
  return `${parts.join('\n\n')}\n`;
}

const callsMarkdown = (calls: number): string => (calls === 1 ? '*1 tool call*' : `*${calls} tool calls*`);

/** Section of a message or an answer; '' for the other items. */
function itemMarkdown(item: Item): string {
  switch (item.type) {
    case 'userMessage':
      return `## You\n\n${writtenIn(item.input) || '(Picture)'}`;
    case 'agentMessage':
      return item.discarded || item.text.trim() === '' ? '' : `## Agent\n\n${item.text.trimEnd()}`;
    case 'error':
      return `**Error:** ${item.error.message}`;
    default:
      return '';
  }
}
