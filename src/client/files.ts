import * as v from 'valibot';
import type { AppServerClient, RequestOptions } from './app-server-client.ts';
import { AppServerConnectionError } from './errors.ts';

type Server = Pick<AppServerClient, 'request'>;

const texts = v.optional(v.array(v.string()), () => []);
const NotCovered = v.looseObject({ path: v.string(), reason: v.string(), size: v.optional(v.number(), 0) });

const LeftPart = v.looseObject({
  name: v.string(),
  reason: v.optional(v.string(), ''),
  command: v.optional(v.string()),
});
const gitAnswer = {
  moved: texts,
  isRestored: v.boolean(),
  reason: v.optional(v.string()),
  left: v.optional(v.array(LeftPart), () => []),
};

const RestoredAnswer = v.looseObject({
  restoreId: v.string(),
  restored: texts,
  restoredTotal: v.optional(v.number(), 0),
  kept: texts,
  keptTotal: v.optional(v.number(), 0),
  changedMeanwhile: texts,
  changedMeanwhileTotal: v.optional(v.number(), 0),
  conflicts: v.optional(v.array(v.looseObject({ path: v.string(), change: v.string(), by: v.string() })), () => []),
  conflictsTotal: v.optional(v.number(), 0),
  notCovered: v.optional(v.array(NotCovered), () => []),
  notCoveredTotal: v.optional(v.number(), 0),
  git: v.optional(v.looseObject(gitAnswer)),
  repositories: v.optional(v.array(v.looseObject({ path: v.string(), ...gitAnswer }))),
  runningProcesses: v.optional(v.array(v.looseObject({ id: v.string(), command: v.string() })), () => []),
});
/** Result of a restore; unknown fields are preserved. */
export type RestoredAnswer = v.InferOutput<typeof RestoredAnswer>;

const DiffAnswer = v.looseObject({
  files: v.array(
    v.looseObject({
      path: v.string(),
      change: v.string(),
      additions: v.optional(v.number(), 0),
      deletions: v.optional(v.number(), 0),
      isBinary: v.optional(v.boolean(), false),
    }),
  ),
  diff: v.optional(v.string()),
  isCut: v.optional(v.boolean(), false),
  putBack: v.optional(v.array(v.looseObject({ path: v.string(), restoreId: v.string() })), () => []),
  notCovered: v.optional(v.array(NotCovered), () => []),
  notCoveredTotal: v.optional(v.number(), 0),
});
export type DiffAnswer = v.InferOutput<typeof DiffAnswer>;

const CheckpointAnswer = v.looseObject({
  turnId: v.string(),
  kind: v.optional(v.string(), 'turn'),
  at: v.string(),
  files: v.optional(v.number(), 0),
  bytes: v.optional(v.number(), 0),
  notCovered: v.optional(v.array(NotCovered), () => []),
  notCoveredTotal: v.optional(v.number(), 0),
  isUndone: v.optional(v.boolean(), false),
  recovered: v.optional(v.boolean(), false),
});
export type CheckpointAnswer = v.InferOutput<typeof CheckpointAnswer>;

export interface UndoOptions extends RequestOptions {
  /** Default 1. */
  readonly turns?: number;
  /** Overwrites later changes of others. Default: the server refuses the request if there are any. */
  readonly force?: boolean;
}

export interface RestoreOptions extends RequestOptions {
  /** Files and directories, relative to the workspace. Default: all. */
  readonly paths?: readonly string[];
  readonly force?: boolean;
}

export interface DiffOptions extends RequestOptions {
  /** Default: all turns of the thread. Undone turns have no changes. */
  readonly turnId?: string | undefined;
  readonly format?: 'unified' | 'summary';
}

async function answerOf<S extends v.GenericSchema>(
  server: Server,
  schema: S,
  [method, params]: readonly [string, Readonly<Record<string, unknown>>],
  options: RequestOptions,
): Promise<v.InferOutput<S>> {
  const answer = v.safeParse(schema, await server.request(method, params, options));
  if (!answer.success) throw new AppServerConnectionError(`The answer to ${method} has an unexpected form.`);
  return answer.output;
}

/**
 * Undoes the last turns of a thread, with their changes in the workspace.
 *
 * @throws JsonRpcError -32019 with `data.conflicts` when others changed the same files since
 * @example const { restored } = await undoTurns(server, threadId, { turns: 2 });
 */
export function undoTurns(
  server: Server,
  threadId: string,
  { turns = 1, force = false, ...options }: UndoOptions = {},
): Promise<RestoredAnswer> {
  const params = { threadId, numTurns: turns, restoreFiles: true, force };
  return answerOf(server, RestoredAnswer, ['thread/rollback', params], options);
}

/**
 * Restores the files to their state before a turn, or before a restore. The conversation stays.
 *
 * @throws JsonRpcError -32019 with `data.conflicts` when others changed the same files since
 * @example await restoreCheckpoint(server, threadId, 'turn_003', { paths: ['src'] });
 */
export function restoreCheckpoint(
  server: Server,
  threadId: string,
  turnId: string,
  { paths, force = false, ...options }: RestoreOptions = {},
): Promise<RestoredAnswer> {
  const params = { threadId, turnId, force, ...(paths && { paths }) };
  return answerOf(server, RestoredAnswer, ['checkpoint/restore', params], options);
}

const ForkAnswer = v.looseObject({
  thread: v.looseObject({
    id: v.string(),
    config: v.optional(v.looseObject({ workspaceOverride: v.optional(v.string(), '') }), { workspaceOverride: '' }),
  }),
});

export interface ForkOptions extends RequestOptions {
  /** Last turn of the copy. Default: the last one that has ended. */
  readonly atTurnId?: string | undefined;
  /** Copies the files, too, into a directory beside the workspace. */
  readonly worktree?: boolean;
  readonly displayName?: string | undefined;
  /** Agent of the copy: one of `agents` of `agent/read`. Default: the agent of the original. */
  readonly agent?: string | undefined;
}

/** A copied thread. `directory` is empty when it works in the files of its original. */
export interface ForkedThread {
  readonly threadId: string;
  readonly directory: string;
}

/**
 * Copies a thread, with `worktree` also its files.
 *
 * @example const { threadId: copy } = await forkThread(server, threadId, { worktree: true });
 */
export async function forkThread(
  server: Server,
  threadId: string,
  { atTurnId, worktree = false, displayName, agent, ...options }: ForkOptions = {},
): Promise<ForkedThread> {
  const params = {
    ...{ threadId, worktree },
    ...(atTurnId !== undefined && { atTurnId }),
    ...(displayName !== undefined && { displayName }),
    ...(agent !== undefined && { agent }),
  };
  const { thread } = await answerOf(server, ForkAnswer, ['thread/fork', params], options);
  return { threadId: thread.id, directory: thread.config.workspaceOverride };
}

export interface MergeOptions extends RequestOptions {
  /** Overwrites changes of both that cannot be merged. Default: the server refuses the request if there are any. */
  readonly force?: boolean;
}

/**
 * Merges the changes of a fork with a worktree into the workspace of its original.
 *
 * @throws JsonRpcError -32019 with `data.conflicts` when both changed the same files in ways that cannot be merged
 * @example const { restoreId } = await mergeFork(server, fork.threadId);
 */
export function mergeFork(
  server: Server,
  threadId: string,
  { force = false, ...options }: MergeOptions = {},
): Promise<RestoredAnswer> {
  return answerOf(server, RestoredAnswer, ['thread/merge', { threadId, force }], options);
}

/**
 * Lists the checkpoints of a thread, oldest first.
 *
 * @example const checkpoints = await listCheckpoints(server, threadId);
 */
export async function listCheckpoints(
  server: Server,
  threadId: string,
  options: RequestOptions = {},
): Promise<readonly CheckpointAnswer[]> {
  const schema = v.looseObject({ data: v.array(CheckpointAnswer) });
  return (await answerOf(server, schema, ['checkpoint/list', { threadId }], options)).data;
}

/**
 * Shows the changes of a turn, or of a whole thread, in the workspace.
 *
 * @example const { diff } = await turnDiff(server, threadId, { turnId: 'turn_003' });
 */
export function turnDiff(
  server: Server,
  threadId: string,
  { turnId, format = 'unified', ...options }: DiffOptions = {},
): Promise<DiffAnswer> {
  const params = { threadId, format, ...(turnId !== undefined && { turnId }) };
  return answerOf(server, DiffAnswer, ['turn/diff', params], options);
}
