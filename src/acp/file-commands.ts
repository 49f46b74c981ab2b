import type { AvailableCommand } from '@agentclientprotocol/sdk';
import {
  type AppServerClient,
  conflictLines,
  notCoveredLines,
  restoredLines,
  turnDiff,
  uncoveredBefore,
  uncoveredLines,
  undoTurns,
} from '../client/index.ts';
import { visible } from '../lib/index.ts';
import { type InputPart, noTurnWords, takenBackWords } from '../protocol/index.ts';
import { fenced } from './prompt.ts';

/** Commands about the files that turns have changed. The protocol has no requests for them, so they are prompts. */
export const fileCommands: readonly AvailableCommand[] = [
  {
    name: 'undo',
    description: 'Take back the last turns with their files; force overwrites later changes',
    input: { hint: '[TURNS] [force]' },
  },
  {
    name: 'diff',
    description: 'Show the changes of this conversation or of one of its turns',
    input: { hint: '[TURN]' },
  },
];

/** Command of an editor's prompt, instead of a turn. */
export type FileCommand =
  | { readonly name: 'undo'; readonly turns: number; readonly force: boolean }
  | { readonly name: 'diff'; readonly turnId: string | undefined }
  | { readonly name: 'usage'; readonly text: string };

/** A restore of a large workspace may take minutes. */
const timeoutMs = 600_000;
/** Characters of a diff that an editor is sent. */
const maxDiffChars = 60_000;

/** Reads a command about files; undefined for every other prompt. One that is not understood changes nothing. */
export function fileCommandOf(input: readonly InputPart[]): FileCommand | undefined {
  const [part, ...others] = input;
  if (part?.type !== 'text' || others.length > 0) return undefined;
  const [name, ...words] = part.text.trim().split(/\s+/);
  if (name === '/undo') return undoOf(words);
  if (name !== '/diff') return undefined;
  const [turnId, ...more] = words;
  return more.length === 0
    ? { name: 'diff', turnId }
    : { name: 'usage', text: 'Usage: /diff [TURN], for example /diff turn_003' };
}

function undoOf(words: readonly string[]): FileCommand {
  const [count = '1', ...more] = words.filter((word) => word !== 'force');
  const turns = Number(count);
  const isUnderstood = more.length === 0 && /^\d+$/.test(count) && turns >= 1 && Number.isSafeInteger(turns);
  if (isUnderstood) return { name: 'undo', turns, force: words.includes('force') };
  return { name: 'usage', text: 'Usage: /undo [TURNS] [force], for example /undo 2' };
}

/** Carries out a command, and describes the outcome. @throws JsonRpcError for a refusal other than conflicts */
export async function runFileCommand(
  client: AppServerClient,
  threadId: string,
  command: FileCommand,
  say: (markdown: string) => void,
): Promise<void> {
  if (command.name === 'usage') return say(command.text);
  if (command.name === 'diff') return showDiff(client, threadId, command.turnId, say);
  const { turns, force } = command;
  const shown = (lines: readonly string[]) => say(`${fenced(lines.join('\n'))}\n`);
  const uncovered = await uncoveredBefore(client, threadId, { turns }, { timeoutMs });
  if (uncovered.turns === 0) return shown([noTurnWords]);
  shown(uncoveredLines(uncovered));
  try {
    const answer = await undoTurns(client, threadId, { turns, force, timeoutMs });
    const back = `To take this back: oratorio undo --thread ${threadId} --restore ${answer.restoreId}`;
    shown([
      `${takenBackWords(uncovered.turns)} The editor still shows it; the agent does not know it any more.`,
      ...restoredLines(answer),
      back,
    ]);
  } catch (error) {
    const conflicts = conflictLines(error);
    if (!conflicts) throw error;
    shown([...conflicts, 'To overwrite these changes: /undo force']);
  }
}

async function showDiff(
  client: AppServerClient,
  threadId: string,
  turnId: string | undefined,
  say: (markdown: string) => void,
): Promise<void> {
  const { diff = '', isCut, notCovered, notCoveredTotal } = await turnDiff(client, threadId, { turnId, timeoutMs });
  const hasMore = isCut || diff.length > maxDiffChars;
  if (notCovered.length > 0) say(`${fenced(notCoveredLines(notCovered, notCoveredTotal).join('\n'))}\n`);
  say(diff === '' ? 'No files changed.\n' : `${fenced(visible(diff.slice(0, maxDiffChars)), 'diff')}\n`);
  if (hasMore) say('More has changed than is shown: oratorio diff\n');
}
