import { randomUUID } from 'node:crypto';
import { mkdir, readFile, rename, stat, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import * as v from 'valibot';
import { killMarked, readJson, writeFileAtomicAsync } from '../../supervise/index.ts';
import type { Borrowed } from './checkout.ts';
import { GitError } from './error.ts';
import { type Layout, trashPath } from './layout.ts';
import type { GitLimits } from './limits.ts';
import { isKey, makeKey } from './paths.ts';
import { removeStaleLocks, removeTree } from './remove.ts';
import { failureText, type GitRunner } from './runner.ts';
import { holding } from './store-lock.ts';
import type { RepositoryName } from './types.ts';

/** Name of the one remote of a store. */
export const remoteName = 'oratorio';

/** Written last: a store without it was never finished. */
const Passport = v.object({ version: v.literal(1), url: v.string(), isPartial: v.boolean(), generation: v.string() });
const passportName = 'oratorio.json';

/** A bare repository of ours that borrows the objects of a checkout. */
export interface ObjectStore {
  readonly key: string;
  readonly gitDir: string;
  readonly url: string;
  /** Objects may be missing, and be fetched one by one. */
  readonly isPartial: boolean;
}

/** Context shared by all stores. */
export interface StoreContext {
  readonly layout: Layout;
  readonly git: GitRunner;
  readonly limits: GitLimits;
}

/** The store of a remote and a checkout. Another checkout, or one that has become shallow, has another store. */
export function storeFor(layout: Layout, repository: RepositoryName, url: string, borrowed: Borrowed): ObjectStore {
  const { owner, name } = repository;
  const key = makeKey([owner, name], JSON.stringify([url, borrowed.objectsPath, borrowed.isPartial]));
  return { key, gitDir: storeDirectory(layout, key), url, isPartial: borrowed.isPartial };
}

export function storeDirectory({ stores }: Layout, key: string): string {
  if (!isKey(key)) throw new GitError('pathOutside', 'This is not the name of a store');
  return join(stores, `${key}.git`);
}

/** Directory in which a store is made: the complete store moves to its place. */
export const unfinishedDirectory = ({ stores }: Layout, key: string): string => join(stores, `${key}.new`);

/**
 * Does `work` on a store, as its only writer. Leftovers of a holder that died (processes, lock files) are removed before:
 * `<key>.busy` records that a holder was at work, and the marker of its processes.
 */
export async function withStore<T>(
  { layout, git, limits }: StoreContext,
  key: string,
  signal: AbortSignal | undefined,
  work: () => Promise<T>,
): Promise<T> {
  const directory = storeDirectory(layout, key);
  const busy = join(layout.stores, `${key}.busy`);
  return await holding(join(layout.stores, `${key}.lock`), { waitMs: limits.lockMs, signal }, async () => {
    await recover(busy, directory);
    await writeFile(busy, git.marker, { mode: 0o600 });
    try {
      return await work();
    } finally {
      await removeTree(busy);
    }
  });
}

async function recover(busy: string, directory: string): Promise<void> {
  const marker = await readFile(busy, 'utf8').catch(() => null);
  if (marker === null) return;
  // Only names of our runners, so that a forged file ends no other process.
  if (/(^|\/)git-[0-9a-f]{32}$/.test(marker)) await killMarked(marker);
  await removeStaleLocks(directory);
}

/**
 * Makes the store unless it is there. To be called within `withStore`.
 * @returns its generation: a store that is made again has a new one
 */
export async function ensureStore(context: StoreContext, store: ObjectStore, borrowed: Borrowed): Promise<string> {
  const { layout, git } = context;
  const passport = readJson(join(store.gitDir, passportName), Passport);
  if (passport.kind === 'ok' && passport.value.url === store.url && passport.value.isPartial === store.isPartial) {
    const now = new Date();
    await utimes(join(store.gitDir, passportName), now, now);
    return passport.value.generation;
  }
  await discardStore(context, store);
  const fresh = unfinishedDirectory(layout, store.key);
  await removeTree(fresh);
  await git.run({
    args: ['init', '--quiet', '--bare', '--template=', '--initial-branch=none', fresh],
  });
  await writeFile(join(fresh, 'config'), configOf(store, layout.empty));
  await mkdir(join(fresh, 'info'), { recursive: true });
  await writeFile(join(fresh, 'info', 'attributes'), attributes);
  if (borrowed.objectsPath !== null) {
    await writeFile(join(fresh, 'objects', 'info', 'alternates'), `${borrowed.objectsPath}\n`);
  }
  const { url, isPartial } = store;
  const generation = randomUUID();
  await writeFileAtomicAsync(join(fresh, passportName), JSON.stringify({ version: 1, url, isPartial, generation }));
  await rename(fresh, store.gitDir);
  return generation;
}

/** Removes a broken store, unless another run has already replaced it. To be called within `withStore`. */
export async function discardGeneration(context: StoreContext, store: ObjectStore, generation: string): Promise<void> {
  const passport = readJson(join(store.gitDir, passportName), Passport);
  if (passport.kind === 'ok' && passport.value.generation === generation) await discardStore(context, store);
}

/** Time of the last use of the store by a run; null when it was never finished. */
export async function lastUsed(gitDir: string): Promise<number | null> {
  const passport = await stat(join(gitDir, passportName)).catch(() => null);
  return passport?.mtimeMs ?? null;
}

/** Removes a store, which can always be made again. To be called within `withStore`. */
export async function discardStore({ layout }: StoreContext, { gitDir }: Pick<ObjectStore, 'gitDir'>): Promise<void> {
  const trash = trashPath(layout.stores);
  try {
    await rename(gitDir, trash);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return;
    throw error;
  }
  await removeTree(trash);
}

/**
 * Whether a command failed because objects are missing or broken: the borrowed checkout has discarded objects that only we
 * still needed. The store must be made again.
 */
export function looksBroken(error: unknown): boolean {
  const isLack = error instanceof GitError && error.code === 'gitMemoryExceeded';
  return !isLack && brokenSigns.test(failureText(error));
}

const brokenSigns = new RegExp(
  [
    'bad object|bad tree|missing (?:blob|tree|commit|object)|unable to read|could not read [0-9a-f]{40}',
    'not a valid object|Not a valid commit name|invalid sha1 pointer|did not send all necessary|corrupt',
    'unable to find [0-9a-f]{40}|could not parse|failed to read',
  ].join('|'),
  'i',
);

/**
 * Attributes of a repository under review do not count: none makes a text binary (and so unseen), converts it, or names a
 * program. This file wins over every `.gitattributes`.
 */
const attributes = '* !diff !merge -text -eol -ident -filter !working-tree-encoding !export-subst !export-ignore\n';

/** Configuration of a store, all of it ours. It also applies to git that a user runs in one of the worktrees. */
function configOf({ url, isPartial }: ObjectStore, emptyDirectory: string): string {
  const sections: [section: string, entries: Record<string, string>][] = [
    [
      'core',
      {
        repositoryFormatVersion: isPartial ? '1' : '0',
        bare: 'true',
        fileMode: 'true',
        symlinks: 'false',
        hooksPath: emptyDirectory,
        fsmonitor: 'false',
        untrackedCache: 'false',
        logAllRefUpdates: 'false',
        autocrlf: 'false',
        quotePath: 'false',
      },
    ],
    ['gc', { auto: '0' }],
    ['maintenance', { auto: 'false' }],
    [`remote "${remoteName}"`, { url, ...(isPartial && { promisor: 'true', partialCloneFilter: 'blob:none' }) }],
  ];
  if (isPartial) sections.push(['extensions', { partialClone: remoteName }]);
  return sections
    .map(([name, entries]) => {
      const lines = Object.entries(entries).map(([key, value]) => `\t${key} = ${quoted(value)}\n`);
      return `[${name}]\n${lines.join('')}`;
    })
    .join('');
}

const quoted = (value: string): string => `"${value.replace(/["\\]/g, '\\$&').replace(/\n/g, '\\n')}"`;
