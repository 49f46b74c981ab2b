import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import * as v from 'valibot';
import { FileRefusedError, readBoundedFile, writeFileAtomic } from '../lib/index.ts';
import { Agreement } from './agreement.ts';
import { TrustError } from './error.ts';
import { LockedFileError, whileLocked } from './lock-file.ts';

/** The user's decision about one workspace. */
const TrustDecision = v.object({
  /** Canonical path of the workspace. */
  path: v.string(),
  /** Uid that owns the workspace's `.oratorio`; null on systems without uids. */
  owner: v.nullable(v.number()),
  /** Hash of the sensitive settings that the user agreed to, see `sensitiveHash`. */
  settingsHash: v.string(),
  trustedAt: v.pipe(v.string(), v.isoTimestamp()),
  /** Missing in decisions of earlier versions. */
  agreement: v.optional(Agreement),
});
export type TrustDecision = v.InferOutput<typeof TrustDecision>;

const TrustDocument = v.object({ version: v.literal(1), workspaces: v.array(TrustDecision) });

/** File of the user's decisions, below the home. */
export const trustFile = (home: string): string => join(home, 'trust.json');

export interface ReadTrust {
  readonly decisions: readonly TrustDecision[];
  /** First decision about each path. */
  readonly byPath: ReadonlyMap<string, TrustDecision>;
  /** Why the file cannot be used; no workspace is trusted then. */
  readonly problem?: string;
}

/** Reads the user's decisions. Never throws: a damaged file trusts no workspace. */
export function readTrustFile(home: string): ReadTrust {
  const file = trustFile(home);
  try {
    const text = readBoundedFile(file, { maxBytes: maxTrustBytes });
    if (text === undefined) return undecided;
    const parsed = v.safeParse(TrustDocument, JSON.parse(text));
    if (!parsed.success) return damaged(`${file} is not a list of trust decisions`);
    const decisions = parsed.output.workspaces;
    return { decisions, byPath: new Map(decisions.toReversed().map((each) => [each.path, each])) };
  } catch (error) {
    if (error instanceof FileRefusedError) return damaged(error.message);
    if (error instanceof SyntaxError) return damaged(`${file} is not JSON`);
    throw error;
  }
}

const maxTrustBytes = 4_194_304;

const undecided: ReadTrust = { decisions: [], byPath: new Map() };

const damaged = (fault: string): ReadTrust => ({
  ...undecided,
  problem: `${fault}: no workspace is trusted. Correct or remove the file, then run oratorio trust for your workspaces.`,
});

/**
 * Changes the decisions: no change of another process is lost.
 *
 * @throws TrustError when the file is damaged, or another process holds its lock for too long
 */
export function changeTrustFile(
  home: string,
  change: (decisions: readonly TrustDecision[]) => readonly TrustDecision[],
): void {
  mkdirSync(home, { recursive: true, mode: 0o700 });
  const file = trustFile(home);
  try {
    whileLocked(file, () => {
      const { decisions, problem } = readTrustFile(home);
      if (problem !== undefined) throw new TrustError(problem);
      const document = { version: 1, workspaces: change(decisions) };
      writeFileAtomic(file, `${JSON.stringify(document, null, 2)}\n`);
    });
  } catch (error) {
    throw error instanceof LockedFileError ? new TrustError(error.message) : error;
  }
}
