import { randomBytes } from 'node:crypto';
import { lstatSync, readlinkSync, renameSync, symlinkSync, writeFileSync } from 'node:fs';
import { isAbsolute, join, resolve } from 'node:path';
import { type BytePath, joined } from './byte-path.ts';
import { isHarmless, parseGitConfig, writeGitConfig } from './git-config.ts';
import { type GitState, hooksIn, textIn } from './git-state.ts';
import { type GitFinding, inDirectory, setAside } from './held-directory.ts';

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
 * @returns findings; empty when the directory was replaced during the search: the next search sees it
 */
export function repairGitDirectory(path: BytePath, options: RepairOptions): readonly GitFinding[] {
  return inDirectory(path, (place) => new Repair(path, place, options).run()) ?? [];
}

/** Moves a `.git` entry aside. */
export function setEntryAside(parent: BytePath, name: string, what: string): readonly GitFinding[] {
  return inDirectory(parent, (place) => [setAside(parent, place, name, what)]) ?? [];
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
    for (const name of ['hooks', 'objects', 'objects/info'])
      inDirectory(joined(this.#directory, name), () => undefined);
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
    return setAside(this.#directory, this.#place, name, what);
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
    const isExpected = !this.#before && this.#isKnown(this.#resolve(text.replace(/(?<![\r\n])[\r\n]+$/, '')));
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
