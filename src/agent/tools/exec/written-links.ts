import { unlinkSync } from 'node:fs';
import { type BytePath, joined, keyOf, nameIn, parentOf } from './byte-path.ts';
import { isMadeAfter, linkTarget, type UntilMs } from './git-state.ts';
import { type GitFinding, inDirectory, openedEntries } from './held-directory.ts';
import { KnownDirectories } from './known-directories.ts';

/** Parts of a git directory whose files git writes by their names, with everything below them. */
const parts = ['logs', 'refs', 'reftable', 'rebase-merge', 'rebase-apply', 'sequencer', 'rr-cache', 'lfs'];
/** Steps of a search between two pauses, in which other work gets its turn. */
const sliceLength = 400;

async function pauseAfter(index: number): Promise<void> {
  if (index % sliceLength === sliceLength - 1) await new Promise((resolve) => setImmediate(resolve));
}

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
  async accept(directory: BytePath): Promise<void> {
    this.#accepted.set(keyOf(directory), new Set((await this.#find(directory)).map(nameOf)));
  }

  /** Accepted links by directory. */
  get record(): [string, string[]][] {
    return [...this.#accepted].map(([directory, links]) => [directory, [...links]]);
  }

  /** Takes over the accepted links of an earlier server. */
  take(record: readonly (readonly [string, readonly string[]])[]): void {
    for (const [directory, links] of record) this.#accepted.set(directory, new Set(links));
  }

  /** Removes new links. @param untilMs links made later count as the user's */
  async remove(directory: BytePath, untilMs: UntilMs = Number.POSITIVE_INFINITY): Promise<readonly GitFinding[]> {
    const accepted = this.#accepted.get(keyOf(directory));
    const found = (await this.#find(directory)).filter((link) => !accepted?.has(nameOf(link)));
    const added = found.filter((link) => !isMadeAfter(link, untilMs));
    const findings: (readonly GitFinding[])[] = [];
    for (const [index, link] of added.entries()) {
      findings.push(removeLink(link));
      await pauseAfter(index);
    }
    return findings.flat();
  }

  /** Searches every directory: git writes through a link behind any number of others. Not for two calls at a time. */
  async #find(directory: BytePath): Promise<readonly BytePath[]> {
    const key = keyOf(directory);
    const known = this.#known.get(key) ?? new KnownDirectories(list);
    this.#known.set(key, known);
    const links: BytePath[] = [];
    const left: BytePath[] = [directory];
    for (const [index, path] of left.entries()) {
      const found = known.read(path);
      if (!found) continue;
      const isTop = path === directory;
      for (const link of found.links) if (!isTop || !isAside(link)) links.push(link);
      for (const each of found.directories) if (!isTop || isPart(each)) left.push(each);
      await pauseAfter(index);
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
  const entries = openedEntries(path);
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
