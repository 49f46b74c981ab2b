import { lstatSync, rmSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import * as v from 'valibot';
import { isWithin } from '../paths.ts';
import { entriesIn } from './byte-path.ts';
import { isChangedAfter, isMadeAfter, linkTarget, readRegular, type UntilMs } from './git-state.ts';
import { asideOf, type GitFinding, inDirectory, setAside } from './held-directory.ts';
import { type PathAccess, statOf } from './mount-plan.ts';

/** Entries of a read-only directory whose names are counted. */
const maxEntries = 500;

interface SharedFile {
  readonly content: Buffer;
  ctimeMs: number;
}

/** Stored form of `FixedFiles`. Contents are base64. */
export const FixedFilesRecord = v.object({
  links: v.array(v.tuple([v.string(), v.string()])),
  shared: v.array(v.tuple([v.string(), v.string(), v.number()])),
});

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
  add(links: ReadonlyMap<string, string>, places: readonly PathAccess[]): void {
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

  /** Restores everything that has changed. @param untilMs later changes count as the user's */
  restore(untilMs: UntilMs): readonly GitFinding[] {
    return [
      ...[...this.#links].flatMap(([path, target]) => (isMadeAfter(path, untilMs) ? [] : restoreLink(path, target))),
      ...[...this.#shared].flatMap(([path, file]) => (isChangedAfter(path, untilMs) ? [] : restoreContent(path, file))),
    ];
  }

  /** State for the next server. */
  get record(): v.InferOutput<typeof FixedFilesRecord> {
    return {
      links: [...this.#links],
      shared: [...this.#shared].map(([path, { content, ctimeMs }]) => [path, content.toString('base64'), ctimeMs]),
    };
  }

  /** Takes over the state of an earlier server. @param tops directories outside which nothing is restored */
  take({ links, shared }: v.InferOutput<typeof FixedFilesRecord>, tops: readonly string[]): void {
    const isInside = (path: string) => tops.some((top) => isWithin(top, path));
    for (const [path, target] of links) if (isInside(path)) this.#links.set(path, target);
    for (const [path, content, ctimeMs] of shared)
      if (isInside(path)) this.#shared.set(path, { content: Buffer.from(content, 'base64'), ctimeMs });
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

/** Moves the new content to a separate file. Both names still refer to one file, which is empty if the disk is too full for its content. */
function restoreContent(path: string, file: SharedFile): readonly GitFinding[] {
  const found = statOf(path, lstatSync);
  if (!found?.isFile() || found.ctimeMs === file.ctimeMs) return [];
  const now = readRegular(path);
  if (now?.equals(file.content)) return [];
  const kept = asideOf(basename(path));
  const what = inDirectory(dirname(path), (place) => {
    const name = join(place, basename(path));
    const isKept = now !== undefined && now.length > 0 && isWritten(join(place, kept), now, 'wx');
    const isRestored = isWritten(name, file.content, 'w');
    if (isRestored) file.ctimeMs = lstatSync(name).ctimeMs;
    const change = isKept ? `; the change is now ${kept}` : '';
    return `was changed by its second name${change}${isRestored ? '' : '; now empty: its content could not be written'}`;
  });
  return what === undefined ? [] : [{ path, what }];
}

/** Writes a file. @returns false: the disk is full, and the file is missing (`wx`) or empty (`w`) */
function isWritten(path: string, content: Buffer, flag: 'w' | 'wx'): boolean {
  try {
    writeFileSync(path, content, { flag, mode: 0o600 });
    return true;
  } catch {
    if (flag === 'wx') rmSync(path, { force: true });
    else truncateSync(path);
    return false;
  }
}
