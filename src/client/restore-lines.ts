/** Results of restores and the files they leave, as lines for people: the same in terminals and editors. */

import * as v from 'valibot';
import { visible } from '../lib/index.ts';
import {
  checkpointBefore,
  conflictWords,
  type FileAct,
  gitWords,
  outsideWords,
  restoredWords,
  rpcErrors,
  uncoveredWords,
} from '../protocol/index.ts';
import { JsonRpcError } from '../rpc/index.ts';
import type { AppServerClient, RequestOptions } from './app-server-client.ts';
import { type CheckpointAnswer, listCheckpoints, type RestoredAnswer } from './files.ts';

type Server = Pick<AppServerClient, 'request'>;

/** Most entries of a list in the lines. */
const maxListed = 50;

/** Makes a value safe for one line: it cannot begin another one. */
const inLine = (text: string): string => visible(text, { multiline: false });

/**
 * Entries that no checkpoint covers, with the reason.
 *
 * @param total of a list that was cut; less than it has: unknown
 * @example for (const line of notCoveredLines(diff.notCovered)) console.warn(line);
 */
export function notCoveredLines(
  entries: readonly { readonly path: string; readonly reason: string }[],
  total = 0,
): string[] {
  const shown = entries.slice(0, maxListed);
  const lines = shown.map(
    ({ path, reason }) => `  not covered: ${inLine(path)} (${inLine(uncoveredWords[reason] ?? reason)})`,
  );
  const more = Math.max(total, entries.length) - shown.length;
  return more > 0 ? [...lines, `  not covered: ${more} more`] : lines;
}

/** Entries that an undo will not restore. */
export interface Uncovered {
  readonly entries: CheckpointAnswer['notCovered'];
  /** Number of all entries; `entries` may hold only the first of them. */
  readonly total: number;
  /** Turn or restore whose checkpoint the undo restores; undefined: these turns have changed no files. */
  readonly turnId: string | undefined;
  /** Number of turns to undo; 0 for a restore. */
  readonly turns: number;
}

/**
 * Reads the entries that the undo of the last turns, or of a restore, will not change.
 *
 * @example const { total } = await uncoveredBefore(server, threadId, { turns: 1 });
 */
export async function uncoveredBefore(
  server: Server,
  threadId: string,
  { turns, restore }: { readonly turns: number; readonly restore?: string | undefined },
  options: RequestOptions = {},
): Promise<Uncovered> {
  const checkpoints = await listCheckpoints(server, threadId, options);
  const last = restore === undefined ? await lastTurns(server, threadId, turns, options) : [];
  const found =
    restore === undefined ? checkpointBefore(checkpoints, last) : checkpoints.find(({ turnId }) => turnId === restore);
  const entries = found?.notCovered ?? [];
  return {
    entries,
    total: Math.max(entries.length, found?.notCoveredTotal ?? 0),
    turnId: found?.turnId,
    turns: last.length,
  };
}

/**
 * Lists, before an undo, the entries that it will not restore.
 *
 * @example for (const line of uncoveredLines(await uncoveredBefore(server, threadId, { turns: 1 }))) console.log(line);
 */
export const uncoveredLines = ({ entries, total }: Pick<Uncovered, 'entries' | 'total'>): string[] => [
  ...(total > 0
    ? ['Not in the checkpoint, so unchanged, or set back by git alone:', ...notCoveredLines(entries, total)]
    : []),
  outsideWords,
];

/**
 * Files that a restore changed and those that it left.
 *
 * @example for (const line of restoredLines(await undoTurns(server, threadId))) console.log(line);
 */
export function restoredLines(answer: RestoredAnswer): string[] {
  const { restored, kept, changedMeanwhile, notCovered, notCoveredTotal, git, runningProcesses } = answer;
  const repositories = answer.repositories ?? [];
  return [
    restoredWords(Math.max(restored.length, answer.restoredTotal)),
    ...listed(restored, 'restored', answer.restoredTotal),
    ...listed(kept, 'kept, changed by you or another conversation', answer.keptTotal),
    ...listed(changedMeanwhile, 'left, changed while it was restored', answer.changedMeanwhileTotal),
    ...(git ? [`  git: ${inLine(gitWords(git))}`] : []),
    ...repositories.slice(0, maxListed).map((each) => `  git in ${inLine(each.path)}: ${inLine(gitWords(each))}`),
    ...notCoveredLines(notCovered, notCoveredTotal),
    ...runningProcesses.map(({ id, command }) => `  still running: ${id} ${inLine(command)}`),
  ];
}

/** @param total of a list that was cut; less than it has: unknown */
function listed(paths: readonly string[], what: string, total: number): string[] {
  const more = Math.max(total, paths.length) - Math.min(maxListed, paths.length);
  return [
    ...paths.slice(0, maxListed).map((path) => `  ${what}: ${inLine(path)}`),
    ...(more > 0 ? [`  ${what}: ${more} more`] : []),
  ];
}

const Conflicts = v.object({
  conflicts: v.array(v.object({ path: v.string(), change: v.string(), by: v.string() })),
  conflictsTotal: v.optional(v.number(), 0),
});

/**
 * Conflicts of a refused restore, the first line with their number; undefined for another error.
 *
 * @example const lines = conflictLines(error);
 */
export function conflictLines(error: unknown, act: FileAct = 'restored'): string[] | undefined {
  if (!(error instanceof JsonRpcError) || error.code !== rpcErrors.restoreConflict.code) return undefined;
  const parsed = v.safeParse(Conflicts, error.data);
  const { conflicts, conflictsTotal } = parsed.success ? parsed.output : { conflicts: [], conflictsTotal: 0 };
  const total = Math.max(conflicts.length, conflictsTotal);
  const more = total - Math.min(maxListed, conflicts.length);
  return [
    `${conflictWords(total, act)}:`,
    ...conflicts
      .slice(0, maxListed)
      .map(({ path, change, by }) => `  ${inLine(path)} (${change} by ${by === 'user' ? 'you' : inLine(by)} since)`),
    ...(more > 0 ? [`  and ${more} more`] : []),
  ];
}

const ThreadWithTurns = v.looseObject({
  thread: v.looseObject({ turns: v.optional(v.array(v.looseObject({ id: v.string() })), () => []) }),
});
/** Most turns of one answer. */
const maxTurns = 1_000;

async function lastTurns(server: Server, threadId: string, count: number, options: RequestOptions): Promise<string[]> {
  const asked = { threadId, includeTurns: true, turnLimit: Math.min(count, maxTurns) };
  const { thread } = v.parse(ThreadWithTurns, await server.request('thread/read', asked, options));
  return thread.turns.map(({ id }) => id);
}
