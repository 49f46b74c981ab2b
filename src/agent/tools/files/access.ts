import { stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { ApprovalNeed, ToolContext, ToolResult } from '../../tool.ts';
import { displayPath, PathError, type PathRules, type ResolvedPath, resolveInWorkspace } from '../paths.ts';
import { failed, refused } from '../text.ts';
import { problemWithFile } from './errors.ts';

type Operation = 'read' | 'write' | 'edit';

/** A place that a call may touch. */
export interface Place {
  readonly path: string;
  readonly isInside: boolean;
  /** As the model is told it. */
  readonly shown: string;
}

/** The guard of one tool: asks for approval, and lets `run` touch only what was approved. */
export interface Access<Args extends object> {
  readonly approvalFor: (args: Args, context: Pick<ToolContext, 'workspacePath'>) => Promise<ApprovalNeed | undefined>;
  /** Calls `work` with the place the arguments name, if it may be touched. What goes wrong with files becomes a result. */
  readonly enter: (
    args: Args,
    context: Pick<ToolContext, 'workspacePath' | 'signal'>,
    work: (place: Place) => Promise<ToolResult>,
  ) => Promise<ToolResult>;
}

/**
 * @param pathOf the path in the arguments, as the model wrote it
 */
export function createAccess<Args extends object>(
  operation: Operation,
  pathOf: (args: Args) => string,
  rules: PathRules,
): Access<Args> {
  /** What each call led to when its approval was considered: by the time it runs, a symlink may lead elsewhere. */
  const considered = new WeakMap<Args, ResolvedPath>();

  async function approvalFor(args: Args, { workspacePath }: Pick<ToolContext, 'workspacePath'>) {
    const resolved = await resolveInWorkspace(workspacePath, pathOf(args), rules).catch(onlyPathErrors);
    // `run` refuses these, whoever approves.
    if (!resolved || resolved.isBlocked) return undefined;
    considered.set(args, resolved);
    return needOf(operation, resolved);
  }

  /** Why this call must not touch the place; undefined: it may. */
  function objection(args: Args, resolved: ResolvedPath): string | undefined {
    if (resolved.isBlocked) return resolved.blockedBecause ?? 'is blocked';
    const then = considered.get(args);
    if (operation === 'read' && resolved.isInside) return undefined;
    if (!then) return resolved.isInside ? undefined : 'is outside the workspace, and nobody was asked';
    return then.path === resolved.path ? undefined : `now leads elsewhere than when approval was considered; try again`;
  }

  return {
    approvalFor,
    async enter(args, { workspacePath, signal }, work) {
      signal.throwIfAborted();
      const given = pathOf(args);
      try {
        const resolved = await resolveInWorkspace(workspacePath, given, rules);
        const problem = objection(args, resolved);
        if (problem !== undefined) return refused(`${given} ${problem}.`);
        const { path, isInside } = resolved;
        return await work({ path, isInside, shown: displayPath(workspacePath, path) });
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

async function needOf(operation: Operation, { path, isInside }: ResolvedPath): Promise<ApprovalNeed | undefined> {
  if (operation === 'read' && isInside) return undefined;
  const place = operation === 'read' ? `read:${await directoryOf(path)}` : `write:${path}`;
  return {
    kind: 'file',
    operation,
    target: path,
    scopeKey: `file:${place}`,
    ...(!isInside && { reason: 'It is outside the workspace.' }),
  };
}

/** A file is read with its directory: who allows one for the session allows its neighbours. */
async function directoryOf(path: string): Promise<string> {
  const isDirectory = await stat(path).then(
    (stats) => stats.isDirectory(),
    // What is not there is named by where it would be.
    () => false,
  );
  return isDirectory ? path : dirname(path);
}
