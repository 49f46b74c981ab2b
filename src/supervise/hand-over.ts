/** Order to an agent server that is about to get SIGTERM. A file: it reaches adopted servers, and ones that answer no request. */
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import * as v from 'valibot';
import { ensureStateDirectory, workspaceStateDirectory } from '../config/index.ts';
import { readUntrustedJson, writeFileAtomic } from '../lib/index.ts';

export const HandOver = v.object({
  /** Start of the agent server that the order is for. */
  incarnation: v.nullable(v.string()),
  reason: v.picklist(['restart', 'stop']),
  /** Time for the present step of each turn. */
  withinMs: v.number(),
  /** Cancels the turns instead of suspending them. */
  endsTurns: v.boolean(),
});
export type HandOver = v.InferOutput<typeof HandOver>;

const fileOf = (home: string, workspacePath: string): string =>
  join(workspaceStateDirectory(home, workspacePath), 'hand-over.json');

/** @throws Error when the file cannot be written */
export function orderHandOver(home: string, workspacePath: string, order: HandOver): void {
  ensureStateDirectory(home, workspacePath);
  // The order ends with the agent server, which a power cut ends, too.
  writeFileAtomic(fileOf(home, workspacePath), JSON.stringify(order), { isFlushed: false });
}

/** Takes the order for the agent server of this incarnation; undefined: SIGTERM did not come from a Hub. */
export function takeHandOver(home: string, workspacePath: string, incarnation: string): HandOver | undefined {
  const file = fileOf(home, workspacePath);
  const read = readUntrustedJson(file, HandOver);
  rmSync(file, { force: true, recursive: true });
  return read.kind === 'ok' && read.value.incarnation === incarnation ? read.value : undefined;
}
