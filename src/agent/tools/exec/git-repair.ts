import { randomBytes } from 'node:crypto';
import {
  closeSync,
  constants,
  lstatSync,
  openSync,
  readlinkSync,
  renameSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { isAbsolute, join, resolve } from 'node:path';
import { isHarmless, parseGitConfig, writeGitConfig } from './git-config.ts';
import { type BytePath, joined } from './git-search.ts';
import { type GitState, hooksIn, textIn } from './git-state.ts';

/** A file that git would have read or run, and that was set aside. */
export interface GitFinding {
  readonly path: string;
  /** Completes "path (…)". */
  readonly what: string;
  /** The file stays where it is, without its set-id bits. */
  readonly isCleared?: true;
}

/** Facts for judging one git directory. */
export interface RepairOptions {
  /** State before the command. Absent: the command made the directory. */
  readonly before?: GitState | undefined;
  /** Whether a place is in the workspace, or a git directory that was there before. */
  readonly isKnown: (path: string) => boolean;
}

/**
 * Sets aside everything in a git directory that a command added and that git would run or follow: configuration that names programs or
 * files, hooks, and pointers to places that no rule covers.
 *
 * @returns findings; empty when the directory was replaced meanwhile: the next search sees it
 */
export function repairGitDirectory(path: BytePath, options: RepairOptions): readonly GitFinding[] {
  return within(path, (place) => new Repair(path, place, options).run()) ?? [];
}

/** Moves a `.git` entry aside. */
export function setEntryAside(parent: BytePath, name: string, what: string): readonly GitFinding[] {
  return within(parent, (place) => [aside(parent, place, name, what)]) ?? [];
}

/** Calls back with a path that keeps leading to this directory, even when a process swaps it for a link. */
function within<T>(path: BytePath, act: (place: string) => T): T | undefined {
  let fd: number | undefined;
  try {
    fd = openSync(path, constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW);
    if (process.platform !== 'linux') return act(String(path));
    const place = `/proc/self/fd/${fd}`;
    return readlinkSync(place, 'buffer').equals(Buffer.from(path)) ? act(place) : undefined;
  } catch {
    return undefined;
  } finally {
    if (fd !== undefined) closeSync(fd);
  }
}

function aside(directory: BytePath, place: string, name: string, what: string): GitFinding {
  const kept = `${name}.removed-${randomBytes(4).toString('hex')}`;
  renameSync(join(place, name), join(place, kept));
  return { path: String(joined(directory, name)), what: `${what}; now ${kept}` };
}

class Repair {
  readonly #directory: BytePath;
  readonly #place: string;
  readonly #before: GitState | undefined;
  readonly #isKnown: RepairOptions['isKnown'];

  constructor(directory: BytePath, place: string, { before, isKnown }: RepairOptions) {
    this.#directory = directory;
    this.#place = place;
    this.#before = before;
    this.#isKnown = isKnown;
  }

  run(): readonly GitFinding[] {
    return [
      ...this.#links(),
      ...this.#config('config'),
      ...this.#config('config.worktree'),
      ...this.#hooks(),
      ...this.#commonDirectory(),
      ...this.#alternates(),
    ];
  }

  #aside(name: string, what: string): GitFinding {
    return aside(this.#directory, this.#place, name, what);
  }

  #stat(name: string) {
    return lstatSync(join(this.#place, name), { throwIfNoEntry: false });
  }

  /** Links that were there lead where they led; no other name becomes a link. */
  #links(): GitFinding[] {
    const names = ['config', 'config.worktree', 'hooks', 'info', 'modules', 'worktrees', 'commondir'];
    return names.flatMap((name) => {
      const target = this.#stat(name)?.isSymbolicLink() ? readlinkSync(join(this.#place, name)) : undefined;
      const before = this.#before?.links.get(name);
      if (target === before) return [];
      const found = this.#stat(name) ? [this.#aside(name, target === undefined ? 'was a link' : 'a link')] : [];
      if (before !== undefined) symlinkSync(before, join(this.#place, name));
      return found;
    });
  }

  #config(name: string): GitFinding[] {
    const before = this.#before?.texts.get(name);
    const found = this.#stat(name);
    if (!found || found.isSymbolicLink()) return [];
    const text = textIn(this.#place, name);
    if (text === undefined) return [this.#aside(name, 'not a text file')];
    if (text === before) return [];
    const { entries, isPlain } = parseGitConfig(text);
    const earlier = new Set(
      before === undefined ? [] : parseGitConfig(before).entries.map((each) => JSON.stringify(each)),
    );
    const isInside = (path: string) => this.#isKnown(this.#resolve(path));
    const kept = entries.filter((each) => earlier.has(JSON.stringify(each)) || isHarmless(each, isInside));
    const removed = [...new Set(entries.filter((each) => !kept.includes(each)).map(({ key }) => key))];
    if (removed.length === 0 && (isPlain || before !== undefined)) return [];
    const fresh = join(this.#place, `${name}.new-${randomBytes(4).toString('hex')}`);
    writeFileSync(fresh, writeGitConfig(kept), { flag: 'wx', mode: found.mode & 0o666 });
    const finding = this.#aside(name, removed.length === 0 ? 'ambiguous text' : removed.slice(0, 5).join(', '));
    renameSync(fresh, join(this.#place, name));
    return [finding];
  }

  #hooks(): GitFinding[] {
    const before = this.#before?.hooks;
    return [...hooksIn(this.#place)]
      .filter(([name, identity]) => before?.get(name) !== identity)
      .map(([name]) => this.#aside(join('hooks', name), 'a hook'));
  }

  #commonDirectory(): GitFinding[] {
    const text = textIn(this.#place, 'commondir');
    if (text === undefined || text === this.#before?.texts.get('commondir')) return [];
    const isExpected = !this.#before && this.#isKnown(this.#resolve(text.replace(/[\r\n]+$/, '')));
    return isExpected ? [] : [this.#aside('commondir', 'another repository')];
  }

  #alternates(): GitFinding[] {
    const name = 'objects/info/alternates';
    const text = textIn(this.#place, name);
    if (text === undefined || text === this.#before?.texts.get(name)) return [];
    const objects = join(String(this.#directory), 'objects');
    const paths = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
    return paths.every((path) => this.#isKnown(resolve(objects, path))) ? [] : [this.#aside(name, 'other objects')];
  }

  #resolve(path: string): string {
    return isAbsolute(path) ? path : resolve(String(this.#directory), path);
  }
}
