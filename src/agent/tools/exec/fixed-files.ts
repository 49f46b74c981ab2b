import { lstatSync, symlinkSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { entriesIn } from './byte-path.ts';
import { linkTarget, readRegular } from './git-state.ts';
import { asideOf, type GitFinding, inDirectory, setAside } from './held-directory.ts';
import { type Place, statOf } from './wall-plan.ts';

/** Entries of a read-only directory whose names are counted. */
const maxEntries = 500;

interface SharedFile {
  readonly content: Buffer;
  ctimeMs: number;
}

/**
 * Files that git follows or runs and that no mount can hold: links on the way to a read-only file, and read-only files with a second name
 * that can be written. They are put right after a command.
 */
export class FixedFiles {
  readonly #links = new Map<string, string>();
  readonly #shared = new Map<string, SharedFile>();

  clear(): void {
    this.#links.clear();
    this.#shared.clear();
  }

  /** @param links targets by path @param places rows of git directories and of files that git uses */
  add(links: ReadonlyMap<string, string>, places: readonly Place[]): void {
    for (const [path, target] of links) this.#links.set(path, target);
    for (const { path, access } of places) if (access === 'read') this.#addShared(path);
  }

  #addShared(path: string): void {
    const found = statOf(path, lstatSync);
    if (found?.isDirectory()) {
      const files = entriesIn(path).filter(({ name }) => typeof name === 'string' && !name.endsWith('.sample'));
      for (const { name } of files.slice(0, maxEntries)) {
        const file = join(path, String(name));
        if (statOf(file, lstatSync)?.isFile()) this.#addShared(file);
      }
    }
    if (!found?.isFile() || found.nlink === 1) return;
    const content = readRegular(path);
    if (content !== undefined) this.#shared.set(path, { content, ctimeMs: found.ctimeMs });
  }

  /** Puts right everything that has changed. */
  restore(): readonly GitFinding[] {
    return [
      ...[...this.#links].flatMap(([path, target]) => restoreLink(path, target)),
      ...[...this.#shared].flatMap(([path, file]) => restoreContent(path, file)),
    ];
  }
}

function restoreLink(path: string, target: string): readonly GitFinding[] {
  if (linkTarget(path) === target || !statOf(path, lstatSync)) return [];
  const found = inDirectory(dirname(path), (place) => {
    const finding = setAside(dirname(path), place, basename(path), `was a link to ${target}`);
    symlinkSync(target, join(place, basename(path)));
    return [finding];
  });
  return found ?? [];
}

/** The new content moves to a file of its own. Both names keep leading to one file. */
function restoreContent(path: string, file: SharedFile): readonly GitFinding[] {
  const found = statOf(path, lstatSync);
  if (!found?.isFile() || found.ctimeMs === file.ctimeMs) return [];
  const now = readRegular(path);
  if (now?.equals(file.content)) return [];
  const kept = asideOf(basename(path));
  const isDone = inDirectory(dirname(path), (place) => {
    if (now !== undefined) writeFileSync(join(place, kept), now, { flag: 'wx', mode: 0o600 });
    writeFileSync(join(place, basename(path)), file.content);
    return true;
  });
  file.ctimeMs = statOf(path, lstatSync)?.ctimeMs ?? 0;
  return isDone ? [{ path, what: `was changed by its second name; the change is now ${kept}` }] : [];
}
