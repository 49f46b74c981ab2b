import * as v from 'valibot';
import { ThreadSummary } from '../../protocol/index.ts';
import type { Row } from './rows.ts';

const { runtime: _, firstInput: __, ...stored } = ThreadSummary.entries;
const ImportedThread = v.object(stored);

/**
 * A stored thread without its rights, as JSON: its approval policy is the default again, and it works in the workspace. One
 * that worked in another directory is archived instead, because its next turn would work in the wrong place.
 *
 * @returns undefined for a row that is not a thread
 */
export function harmlessThread({ id, json }: Row, workspacePath: string): string | undefined {
  const read = v.safeParse(v.pipe(v.string(), v.parseJson(), ImportedThread), json);
  if (!read.success || read.output.id !== id) return undefined;
  const { config, ...thread } = read.output;
  const { approvalPolicy: _, workspaceOverride, ...rest } = config ?? {};
  return JSON.stringify({
    ...thread,
    workspacePath,
    ...(workspaceOverride !== undefined && { status: 'archived' }),
    ...(config !== undefined && { config: rest }),
  });
}

const Decided = v.looseObject({ approvalPolicy: v.optional(v.unknown()) });
const Progress = v.looseObject({ failures: v.number(), retry: v.optional(v.unknown()) });
const parsed = <S extends v.GenericSchema>(schema: S) => v.pipe(v.string(), v.parseJson(), schema);

/**
 * A stored automation without its approval policy and without a waiting retry.
 *
 * @returns undefined for a row that is not an automation
 */
export function harmlessAutomation({ json, progress }: Row): { json: string; progress: string } | undefined {
  const decided = v.safeParse(parsed(Decided), json);
  const kept = v.safeParse(parsed(Progress), progress);
  if (!decided.success || !kept.success) return undefined;
  const { approvalPolicy: _, ...rest } = decided.output;
  return { json: JSON.stringify(rest), progress: JSON.stringify({ ...kept.output, retry: null }) };
}
