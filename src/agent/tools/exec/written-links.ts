import { unlinkSync } from 'node:fs';
import { type BytePath, entriesIn, joined, keyOf, nameIn, parentOf } from './byte-path.ts';
import { linkTarget } from './git-state.ts';
import { type GitFinding, inDirectory } from './held-directory.ts';
import { KnownDirectories } from './known-directories.ts';

/** Parts of a git directory whose files git writes by their names, with everything below them. */
const parts = ['logs', 'refs', 'reftable', 'rebase-merge', 'rebase-apply', 'sequencer', 'rr-cache', 'lfs'];
/** Directories of one git directory that are searched. */
const maxDirectories = 5_000;

interface SearchedDirectory {
  readonly directories: readonly BytePath[];
  readonly links: readonly BytePath[];
}

/**
 * Links in git directories that git of the user would write through: a reflog that is a link to a start file of the shell, and a branch
 * whose name is a command, make a program of it.
 */
export class WrittenLinks {
  readonly #known = new Map<string, KnownDirectories<SearchedDirectory>>();
  readonly #accepted = new Map<string, ReadonlySet<string>>();

  clear(): void {
    this.#accepted.clear();
  }

  /** Accepts the links of a git directory: they belong to the user. */
  accept(directory: BytePath): void {
    this.#accepted.set(keyOf(directory), new Set(this.#find(directory).map(nameOf)));
  }

  /** Removes the links that are new. */
  remove(directory: BytePath): readonly GitFinding[] {
    const accepted = this.#accepted.get(keyOf(directory));
    return this.#find(directory)
      .filter((link) => !accepted?.has(nameOf(link)))
      .flatMap(removeLink);
  }

  #find(directory: BytePath): readonly BytePath[] {
    const key = keyOf(directory);
    const known = this.#known.get(key) ?? new KnownDirectories(list);
    this.#known.set(key, known);
    const links: BytePath[] = [];
    const left: BytePath[] = [directory];
    for (const path of left) {
      const found = known.reached < maxDirectories ? known.read(path) : undefined;
      if (!found) continue;
      const isTop = path === directory;
      links.push(...(isTop ? found.links.filter((link) => !isAside(link)) : found.links));
      left.push(...(isTop ? found.directories.filter(isPart) : found.directories));
    }
    known.finish();
    return links;
  }
}

const isPart = (path: BytePath): boolean => parts.some((name) => path.toString().endsWith(`/${name}`));

const isAside = (link: BytePath): boolean => /\.removed-[0-9a-f]{8}$/.test(link.toString());

/** A link with its target. */
const nameOf = (link: BytePath): string => `${keyOf(link)}\0${linkTarget(link) ?? ''}`;

function list(path: BytePath): SearchedDirectory {
  const entries = entriesIn(path);
  const pathsOf = (chosen: typeof entries) => chosen.map(({ name }) => joined(path, name));
  return {
    directories: pathsOf(entries.filter((entry) => entry.isDirectory())),
    links: pathsOf(entries.filter((entry) => entry.isSymbolicLink())),
  };
}

function removeLink(link: BytePath): readonly GitFinding[] {
  const found = inDirectory(parentOf(link), (place) => {
    const finding = { path: String(link), what: `a link to ${linkTarget(link) ?? ''}; removed` };
    unlinkSync(joined(place, nameIn(link)));
    return [finding];
  });
  return found ?? [];
}
