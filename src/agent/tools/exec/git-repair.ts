import { randomBytes } from 'node:crypto';
import { lstatSync, readlinkSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { isAbsolute, join, resolve } from 'node:path';
import { messageOf } from '../../../lib/index.ts';
import { type BytePath, joined } from './byte-path.ts';
import { isHarmless, parseGitConfig, writeGitConfig } from './git-config.ts';
import { type GitState, hooksIn, isChangedAfter, isMadeAfter, textIn, type UntilMs } from './git-state.ts';
import { type GitFinding, inDirectory, setAside } from './held-directory.ts';

/** Facts for judging one git directory. */
export interface RepairOptions {
  /** State before the command. Absent: the command made the directory. */
  readonly before?: GitState | undefined;
  /** Whether a place is in the workspace, or a git directory that was there before. */
  readonly isKnown: (path: string) => boolean;
  /** Later changes are those of the user. Default: Infinity. */
  readonly untilMs?: UntilMs;
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

/** An entry that cannot be moved does not stop the check of the others, because a command chooses the names. */
function attempt(judge: () => GitFinding[]): GitFinding[] {
  try {
    return judge();
  } catch {
    return [];
  }
}

class Repair {
  readonly #directory: BytePath;
  readonly #place: string;
  readonly #before: GitState | undefined;
  readonly #isKnown: RepairOptions['isKnown'];
  readonly #untilMs: UntilMs;

  constructor(
    directory: BytePath,
    place: string,
    { before, isKnown, untilMs = Number.POSITIVE_INFINITY }: RepairOptions,
  ) {
    this.#directory = directory;
    this.#place = place;
    this.#before = before;
    this.#isKnown = isKnown;
    // A command created the whole directory, so the user had no reason to change it before this check.
    this.#untilMs = before ? untilMs : Number.POSITIVE_INFINITY;
  }

  run(): readonly GitFinding[] {
    for (const name of ['hooks', 'objects', 'objects/info'])
      inDirectory(joined(this.#directory, name), () => undefined);
    return [
      ...this.#links(),
      ...attempt(() => this.#config('config')),
      ...attempt(() => this.#config('config.worktree')),
      ...this.#hooks(),
      ...attempt(() => this.#commonDirectory()),
      ...attempt(() => this.#alternates()),
    ];
  }

  #aside(name: string, what: string): GitFinding {
    return setAside(this.#directory, this.#place, name, what);
  }

  #stat(name: string) {
    return lstatSync(join(this.#place, name), { throwIfNoEntry: false });
  }

  /** Whether the user changed the content of a file after the end of the sandbox. */
  #isOfUser(name: string): boolean {
    return isChangedAfter(join(this.#place, name), this.#untilMs);
  }

  /** Links that were there lead where they led; no other name becomes a link. */
  #links(): GitFinding[] {
    const names = ['config', 'config.worktree', 'hooks', 'info', 'modules', 'worktrees', 'commondir'];
    return names.flatMap((name) => attempt(() => this.#link(name)));
  }

  #link(name: string): GitFinding[] {
    const target = this.#stat(name)?.isSymbolicLink() ? readlinkSync(join(this.#place, name)) : undefined;
    const before = this.#before?.links.get(name);
    if (target === before || isMadeAfter(join(this.#place, name), this.#untilMs)) return [];
    const found = this.#stat(name) ? [this.#aside(name, target === undefined ? 'was a link' : 'a link')] : [];
    if (before !== undefined) symlinkSync(before, join(this.#place, name));
    return found;
  }

  #config(name: string): GitFinding[] {
    const before = this.#before?.texts.get(name);
    const found = this.#stat(name);
    if (!found || found.isSymbolicLink()) return [];
    const text = textIn(this.#place, name);
    if (text === undefined) return [this.#aside(name, 'not a text file')];
    if (text === before || this.#isOfUser(name)) return [];
    const { entries, isPlain } = parseGitConfig(text);
    const earlier = new Set(
      before === undefined ? [] : parseGitConfig(before).entries.map((each) => JSON.stringify(each)),
    );
    const isInside = (path: string) => this.#isKnown(this.#resolve(path));
    const kept = entries.filter((each) => earlier.has(JSON.stringify(each)) || isHarmless(each, isInside));
    const removed = [...new Set(entries.filter((each) => !kept.includes(each)).map(({ key }) => key))];
    if (removed.length === 0 && (isPlain || before !== undefined)) return [];
    const what = removed.length === 0 ? 'ambiguous text' : removed.slice(0, 5).join(', ');
    return [this.#replace(name, writeGitConfig(kept), { what, mode: found.mode & 0o666 })];
  }

  /** If the disk is too full for the new text, the name stays missing and git uses its defaults. */
  #replace(name: string, text: string, { what, mode }: { readonly what: string; readonly mode: number }): GitFinding {
    const fresh = join(this.#place, `${name}.new-${randomBytes(4).toString('hex')}`);
    try {
      writeFileSync(fresh, text, { flag: 'wx', mode });
    } catch (error) {
      rmSync(fresh, { force: true });
      return this.#aside(name, `${what}; the other entries could not be written: ${messageOf(error)}`);
    }
    const finding = this.#aside(name, what);
    renameSync(fresh, join(this.#place, name));
    return finding;
  }

  #hooks(): GitFinding[] {
    const before = this.#before?.hooks;
    return [...hooksIn(this.#place)]
      .filter(([name, identity]) => before?.get(name) !== identity)
      .filter(([name]) => !isMadeAfter(join(this.#place, 'hooks', name), this.#untilMs))
      .flatMap(([name]) => attempt(() => [this.#aside(join('hooks', name), 'a hook')]));
  }

  #commonDirectory(): GitFinding[] {
    const text = textIn(this.#place, 'commondir');
    if (text === undefined || text === this.#before?.texts.get('commondir') || this.#isOfUser('commondir')) return [];
    const isExpected = !this.#before && this.#isKnown(this.#resolve(text.replace(/(?<![\r\n])[\r\n]+$/, '')));
    return isExpected ? [] : [this.#aside('commondir', 'another repository')];
  }

  #alternates(): GitFinding[] {
    const name = 'objects/info/alternates';
    const text = textIn(this.#place, name);
    if (text === undefined || text === this.#before?.texts.get(name) || this.#isOfUser(name)) return [];
    const objects = join(String(this.#directory), 'objects');
    const paths = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
    return paths.every((path) => this.#isKnown(resolve(objects, path))) ? [] : [this.#aside(name, 'other objects')];
  }

  #resolve(path: string): string {
    return isAbsolute(path) ? path : resolve(String(this.#directory), path);
  }
}
