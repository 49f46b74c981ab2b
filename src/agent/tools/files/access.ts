import { stat } from 'node:fs/promises';
import type { ApprovalNeed, ToolContext, ToolResult } from '../../tool.ts';
import { maxOutputFileBytes } from '../output-files.ts';
import { displayPath, PathError, type ResolvedPath, resolveInWorkspace } from '../paths.ts';
import { failed, refused } from '../text.ts';
import { problemWithFile } from './errors.ts';
import type { FileToolSettings } from './settings.ts';

/** `read`: one file, or the list of one directory. `find`, `grep`: names, contents of a whole tree, or of one file. */
type Operation = 'read' | 'find' | 'grep' | 'write' | 'edit';

/** Kind of a path when its approval was considered; missing paths count as files. */
type PlaceKind = 'file' | 'directory';

/** A place that a call may touch. */
export interface PermittedPath {
  readonly path: string;
  readonly isInside: boolean;
  /** Path as the model sees it. */
  readonly shown: string;
  /** Longest file there, in bytes. */
  readonly maxFileBytes: number;
}

/** The guard of one tool: asks for approval, and lets `run` touch only the approved path. */
export interface Access<Args extends object> {
  readonly approvalFor: (
    args: Args,
    context: Pick<ToolContext, 'workspacePath' | 'directories'>,
  ) => Promise<ApprovalNeed | undefined>;
  /** Calls `work` with the place the arguments name, if it may be touched. Errors of files become a result. */
  readonly enter: (
    args: Args,
    context: Pick<ToolContext, 'workspacePath' | 'directories' | 'signal'>,
    work: (place: PermittedPath) => Promise<ToolResult>,
  ) => Promise<ToolResult>;
}

/**
 * @param pathOf the path in the arguments, as the model wrote it
 */
export function createAccess<Args extends object>(
  operation: Operation,
  pathOf: (args: Args) => string,
  rules: FileToolSettings,
): Access<Args> {
  const isRead = operation === 'read' || operation === 'find' || operation === 'grep';
  const purpose = isRead ? 'read' : 'use';
  /** Target of each call when its approval was considered: by the time it runs, a symlink may lead elsewhere. */
  const considered = new WeakMap<Args, { readonly path: string; readonly kind?: PlaceKind }>();

  async function approvalFor(
    args: Args,
    { workspacePath, directories }: Pick<ToolContext, 'workspacePath' | 'directories'>,
  ) {
    const given = pathOf(args);
    const resolved = await resolveInWorkspace(workspacePath, given, rules, purpose, directories).catch(onlyPathErrors);
    // `run` refuses these even with an approval.
    if (!resolved || resolved.isBlocked) return undefined;
    const { path } = resolved;
    considered.set(args, { path });
    if (isRead && resolved.isInside) return undefined;
    const kind = await kindOf(path);
    considered.set(args, { path, kind });
    return needOf(operation, resolved, kind);
  }

  /** Why this call must not touch the place; undefined: it may. */
  async function objection(args: Args, resolved: ResolvedPath): Promise<string | undefined> {
    if (resolved.isBlocked) return resolved.blockedBecause ?? 'is blocked';
    const then = considered.get(args);
    if (isRead && resolved.isInside) return undefined;
    if (!then) return resolved.isInside ? undefined : 'is outside the workspace and was not approved';
    if (then.path !== resolved.path) return 'now leads elsewhere than when approval was considered; try again';
    const isSame = !isRead || then.kind === (await kindOf(resolved.path));
    return isSame ? undefined : `was a ${then.kind} when approval was considered and has changed since; try again`;
  }

  return {
    approvalFor,
    async enter(args, { workspacePath, directories, signal }, work) {
      signal.throwIfAborted();
      const given = pathOf(args);
      try {
        const resolved = await resolveInWorkspace(workspacePath, given, rules, purpose, directories);
        const problem = await objection(args, resolved);
        if (problem !== undefined) return refused(`${given} ${problem}.`);
        const { path, isInside, isReadable } = resolved;
        const maxFileBytes = isReadable ? Math.max(rules.maxFileBytes, maxOutputFileBytes) : rules.maxFileBytes;
        return await work({ path, isInside, shown: displayPath(workspacePath, path), maxFileBytes });
      } catch (error) {
        signal.throwIfAborted();
        if (error instanceof PathError) return refused(error.message);
        const problem = problemWithFile(error);
        if (problem === undefined) throw error;
        return failed(`${given}: ${problem}.`);
      }
    },
  };
}

function onlyPathErrors(error: unknown): undefined {
  if (!(error instanceof PathError)) throw error;
}

function needOf(operation: Operation, { path, isInside }: ResolvedPath, kind: PlaceKind): ApprovalNeed {
  return {
    kind: 'file',
    target: path,
    ...scopeOf(operation, path, kind),
    ...(!isInside && { reason: 'It is outside the workspace.' }),
  };
}

/** No two kinds of access share a key: an approval to read one file allows neither its neighbours nor a search. */
function scopeOf(
  operation: Operation,
  path: string,
  kind: PlaceKind,
): Pick<ApprovalNeed, 'operation' | 'scopeKey' | 'covers'> {
  const isDirectory = kind === 'directory';
  switch (operation) {
    case 'write':
    case 'edit':
      return { operation, scopeKey: `file:write:${path}`, covers: `writing and editing the file ${path}` };
    case 'read':
      return isDirectory
        ? { operation: 'list', scopeKey: `list:${path}`, covers: `listing the names in ${path}, not below it` }
        : { operation, scopeKey: `read:${path}`, covers: `reading the file ${path}` };
    case 'find':
      return {
        operation: 'search',
        scopeKey: `find:${path}`,
        covers: `finding files by name in ${path} and everything below it`,
      };
    case 'grep':
      return isDirectory
        ? {
            operation: 'search',
            scopeKey: `grep-recursive:${path}`,
            covers: `searching the contents of all files in ${path} and everything below it`,
          }
        : { operation: 'search', scopeKey: `grep:${path}`, covers: `searching the contents of the file ${path}` };
  }
}

/** A path that does not exist is treated as a file. */
const kindOf = (path: string): Promise<PlaceKind> =>
  stat(path).then(
    (stats) => (stats.isDirectory() ? 'directory' : 'file'),
    () => 'file',
  );
