import { resolve } from 'node:path';
import * as v from 'valibot';
import { isWithin } from '../paths.ts';
import { type BytePath, keyOf } from './byte-path.ts';
import { type FixedFiles, FixedFilesRecord } from './fixed-files.ts';
import type { GitDirectory } from './git-places.ts';
import type { GitState } from './git-state.ts';
import type { WrittenLinks } from './written-links.ts';

/** State of a repository at its last check. */
export interface KnownRepository {
  readonly identity: string;
  /** Git directories of the repository, with their states; undefined: a command created the directory. */
  readonly directories: Map<BytePath, { fingerprint: string; readonly state: GitState | undefined }>;
}

const Texts = v.array(v.tuple([v.string(), v.string()]));

/** Stored form of `GitState`. */
const StateRecord = v.object({ directory: v.string(), texts: Texts, links: Texts, hooks: Texts });

/** Facts with which the next server's `GitGuard` compares the repositories of a workspace. */
export const GuardRecord = v.object({
  openedMs: v.number(),
  entries: v.array(
    v.object({
      path: v.string(),
      identity: v.string(),
      directories: v.array(v.object({ path: v.string(), fingerprint: v.string(), state: v.nullable(StateRecord) })),
    }),
  ),
  protected: v.array(v.object({ path: v.string(), tops: v.array(v.string()), isLinked: v.boolean() })),
  links: v.array(v.tuple([v.string(), v.array(v.string())])),
  fixed: FixedFilesRecord,
});
export type GuardRecord = v.InferOutput<typeof GuardRecord>;

interface GuardFiles {
  readonly links: WrittenLinks;
  readonly fixed: FixedFiles;
}

interface GuardState {
  readonly openedMs: number;
  /** Repositories by the `keyOf` of their paths. */
  readonly repositories: ReadonlyMap<string, KnownRepository>;
  readonly git: readonly GitDirectory[];
}

/** Stored form of a guard's state. */
export const recordOf = ({ openedMs, repositories, git, links, fixed }: GuardState & GuardFiles): GuardRecord => ({
  openedMs,
  entries: [...repositories].map(([path, { identity, directories }]) => ({
    ...{ path, identity },
    directories: [...directories].map(([each, { fingerprint, state }]) => ({
      ...{ path: keyOf(each), fingerprint, state: state ? recordOfState(state) : null },
    })),
  })),
  protected: git.map(({ path, tops, isLinked }) => ({ path, tops: [...tops], isLinked })),
  links: links.record,
  fixed: fixed.record,
});

/** Reads a state, without paths outside `tops`. @param files receive their parts of the record */
export function stateIn(record: GuardRecord, tops: readonly string[], { links, fixed }: GuardFiles): GuardState {
  const isOurs = ({ path }: { readonly path: string }) => isWithinOne(tops, path.replace(/^\0/, ''));
  links.take(record.links.filter(([path]) => isOurs({ path })));
  fixed.take(record.fixed, tops);
  const repositories = record.entries.filter(isOurs).map(({ path, identity, directories }) => {
    const states = directories.filter(isOurs).map(({ path: key, fingerprint, state }) => {
      return [pathOfKey(key), { fingerprint, state: state ? stateOfRecord(state) : undefined }] as const;
    });
    return [path, { identity, directories: new Map(states) }] as const;
  });
  const { openedMs, protected: git } = record;
  return { openedMs, repositories: new Map(repositories), git: git.filter(isOurs) };
}

/** Whether a path without `..` lies in one of these directories. */
export const isWithinOne = (tops: readonly string[], path: string): boolean =>
  resolve(path) === path && tops.some((top) => isWithin(top, path));

const recordOfState = ({ directory, texts, links, hooks }: GitState): v.InferOutput<typeof StateRecord> => ({
  ...{ directory, texts: [...texts], links: [...links], hooks: [...hooks] },
});

const stateOfRecord = ({ directory, texts, links, hooks }: v.InferOutput<typeof StateRecord>): GitState => ({
  ...{ directory, texts: new Map(texts), links: new Map(links), hooks: new Map(hooks) },
});

/** Inverse of `keyOf`. */
const pathOfKey = (key: string): BytePath => (key.startsWith('\0') ? Buffer.from(key.slice(1), 'latin1') : key);
