import { extraToolNames, toolNames } from '../config/index.ts';

const names = [...toolNames, ...extraToolNames];
const builtin: ReadonlySet<string> = new Set(names);

/** Label values of tools, all that there are. */
export const toolLabels: readonly string[] = [...names, 'mcp', 'other'];

/** A model calls tools that do not exist, and clients bring their own: only names that we chose become a label. */
export function toolLabel(tool: string | undefined): string {
  if (tool === undefined) return 'other';
  if (builtin.has(tool)) return tool;
  return tool.startsWith('mcp__') ? 'mcp' : 'other';
}

/** `value` when it is one of `known`, else `other`. */
export function knownOr<T extends string>(known: readonly T[], value: unknown): T | 'other' {
  return known.find((each) => each === value) ?? 'other';
}
