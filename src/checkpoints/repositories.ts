import type { BytePath } from './byte-path.ts';
import type { ContentReader } from './content-reader.ts';
import type { Contents } from './contents.ts';
import { GitIndex } from './git-index.ts';
import { type GitPlace, gitPlaceOf, modulePlaces, placeIn } from './git-place.ts';
import { readRepository, repositoryChangedAt } from './git-read.ts';
import { type GitState, parseGitState, type TreeState } from './git-state.ts';
import type { RunGit } from './ignored.ts';
import { slicesOf } from './pieces.ts';

export interface RepositoriesOptions {
  /** Canonical path of the tree. */
  readonly root: string;
  readonly contents: Contents;
  /** Directory of the store. */
  readonly directory: string;
  readonly git: RunGit | undefined;
}

/**
 * State of a repository at a mark, also of a submodule that is not checked out then.
 * @param known an earlier or later state of the repository
 */
export function nestedAt({ nested }: TreeState, path: BytePath, known: GitState | undefined): GitState | undefined {
  const directory = known?.place?.kind === 'module' ? known.place.directory : undefined;
  const isSameModule = ({ place }: GitState) => place?.kind === 'module' && place.directory === directory;
  return nested[path] ?? (directory === undefined ? undefined : Object.values(nested).find(isSameModule));
}

/** Whether a path is that of the repository of a submodule that is not checked out. */
export const isModulePath = (path: BytePath): boolean => path.startsWith('.git/');

/** A repository of the tree with the means to set it back. */
export interface Repository {
  readonly place: GitPlace;
  readonly index: GitIndex;
  /** Runs git in the repository; undefined: there is no git. */
  readonly git: RunGit | undefined;
}

/** Saved state of the repositories at a mark: names of contents; the first one is the state itself. */
export interface SavedRepositories {
  readonly contents: readonly string[];
}

/** Saved states of a tree's repositories. */
export type SavedStates = Pick<Repositories, 'root' | 'at'>;

/** State of the repositories at a mark. @param saved column of the mark */
export function stateAt(contents: ContentReader, saved: unknown): TreeState {
  const json: unknown = typeof saved === 'string' ? JSON.parse(saved) : undefined;
  const isStored = (each: unknown): each is SavedRepositories =>
    typeof each === 'object' && each !== null && 'contents' in each;
  const [hash] = isStored(json) ? json.contents : [];
  const stored: unknown = hash === undefined ? json : JSON.parse(Buffer.concat([...contents.read(hash)]).toString());
  const state = parseGitState(stored);
  if (!state) return { root: undefined, nested: {} };
  const { nested = {}, ...root } = state;
  return { root: root.head === '' ? undefined : root, nested };
}

/** Most nested repositories read at a mark; further ones are ignored. */
const maxNested = 200;

/** The repositories of one tree: its own, and those in its directories. Their state is saved with each mark. */
export class Repositories {
  readonly #options: RepositoriesOptions;
  readonly #indexes = new Map<BytePath, GitIndex>();

  constructor(options: RepositoriesOptions) {
    this.#options = options;
  }

  /** Canonical path of the tree. */
  get root(): string {
    return this.#options.root;
  }

  /**
   * Stores the present state.
   *
   * @param nested directories of the tree with a `.git`
   * @param aliveUntil last sign of life of a process that crashed: later changes of the repository are marked
   * @returns undefined: no repository
   */
  save(nested: readonly BytePath[], aliveUntil: number | undefined): SavedRepositories | undefined {
    const state = this.read(nested, aliveUntil);
    if (!state) return undefined;
    const json = Buffer.from(JSON.stringify(state));
    const hash = this.#options.contents.putAll(slicesOf(json), json.length);
    const indexes = [state, ...Object.values(state.nested ?? {})].flatMap(({ index }) => index ?? []);
    return { contents: [...new Set([hash, ...indexes])] };
  }

  /** Reads the present state and stores the indexes. @returns undefined: no repository */
  read(nested: readonly BytePath[], aliveUntil?: number): GitState | undefined {
    const { root } = this.#options;
    const place = gitPlaceOf(root);
    const own = place && this.#stateOf('', place, aliveUntil);
    const below: Record<BytePath, GitState> = {};
    for (const path of [...nested].sort().slice(0, maxNested)) {
      const found = placeIn(root, path);
      const state = found && this.#stateOf(path, found, aliveUntil);
      if (state) below[path] = state;
    }
    const used = new Set(Object.values(below).map((state) => state.place?.directory));
    for (const each of place?.kind === 'own' ? modulePlaces(root) : []) {
      const path = each.way?.directory ?? '';
      const state = used.has(each.directory) ? undefined : this.#stateOf(path, each, aliveUntil);
      if (state) below[path] = state;
    }
    if (!own && Object.keys(below).length === 0) return undefined;
    return { ...(own ?? noRepository), nested: below };
  }

  /** State at a mark. @param saved column of the mark */
  at(saved: unknown): TreeState {
    return stateAt(this.#options.contents, saved);
  }

  /** Finds the repository of a directory. @param path `''`: of the tree itself */
  of(path: BytePath): Repository | undefined {
    const { root, git } = this.#options;
    const place = path === '' ? gitPlaceOf(root) : placeIn(root, path);
    if (!place) return undefined;
    return {
      place,
      index: this.indexOf(path),
      git: git && (place.kind === 'own' && path === '' ? git : inPlace(git, place)),
    };
  }

  /** The index of a repository, to compare saved ones. */
  indexOf(path: BytePath): GitIndex {
    const known = this.#indexes.get(path);
    if (known) return known;
    const { root, contents, directory, git } = this.#options;
    const place = path === '' ? undefined : placeIn(root, path);
    const index = new GitIndex({ contents, directory, git: git && place ? inPlace(git, place) : git });
    this.#indexes.set(path, index);
    return index;
  }

  /** Forgets the indexes after a failed commit, which has lost their contents. */
  forget(): void {
    this.#indexes.clear();
  }

  #stateOf(path: BytePath, place: GitPlace, aliveUntil: number | undefined): GitState | undefined {
    const state = readRepository(place);
    if (!state) return undefined;
    const isUncertain = aliveUntil !== undefined && Math.floor(repositoryChangedAt(place)) > aliveUntil;
    return { ...state, ...this.indexOf(path).save(place), ...(isUncertain && { isUncertain }) };
  }
}

/** State of the tree's own repository where only its directories have one. */
const noRepository: GitState = { head: '', refs: {} };

/** Runs git in the repository that was found, even when the `.git` of the directory names another one by now. */
const inPlace =
  (git: RunGit, { directory }: GitPlace): RunGit =>
  (args, ...rest) =>
    git(['--git-dir', directory, ...args], ...rest);
