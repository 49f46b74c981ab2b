import { type FSWatcher, lstatSync, watch } from 'node:fs';
import { dirname, join } from 'node:path';
import { canonicalPath } from '../../../lib/index.ts';
import { isWithin } from '../paths.ts';
import { type BytePath, keyOf, parentOf } from './byte-path.ts';
import { FixedFiles } from './fixed-files.ts';
import { type GitDirectory, placesOfConfig, placesOfGit } from './git-places.ts';
import { repairGitDirectory, setEntryAside } from './git-repair.ts';
import { type GitEntry, GitSearch } from './git-search.ts';
import {
  alternatesOf,
  commonOf,
  directoryOf,
  fingerprintOf,
  isMadeAfter,
  isWatched,
  isWorktreeOf,
  modulesOf,
  stateOf,
  targetOf,
  type UntilMs,
  worktreesOf,
} from './git-state.ts';
import { type GuardRecord, isWithinOne, type KnownRepository, recordOf, stateIn } from './guard-record.ts';
import type { GitFinding } from './held-directory.ts';
import { tickMs } from './known-directories.ts';
import { type PathAccess, statOf } from './mount-plan.ts';
import { SetIdSearch } from './set-id.ts';
import { WrittenLinks } from './written-links.ts';

type Environment = Readonly<Record<string, string | undefined>>;

/** Git directories that get a rule for each name. More of them are read-only as a whole. */
const maxDetailed = 60;
const maxPlaces = 1_000;
/** Directories up to which a command waits for the search after it. A search of more ends while the model thinks. */
const maxPrompt = 250;

/**
 * Watches over the repositories of a workspace. Those that are there when a sandbox opens get rows of the rule. Those that a command makes
 * are searched for after it, and everything that git would run in them is set aside.
 */
export class GitGuard {
  readonly #workspacePath: string;
  readonly #search: GitSearch;
  readonly #setId: SetIdSearch;
  readonly #before = new Map<string, KnownRepository>();
  /** Repositories that commands have made. */
  readonly #made = new Map<string, KnownRepository>();
  #protected: readonly GitDirectory[] = [];
  #holders = 0;
  #work: Promise<unknown> = Promise.resolve();
  #pending: GitFinding[] = [];
  readonly #watchers: FSWatcher[] = [];
  readonly #links = new WrittenLinks();
  readonly #fixed = new FixedFiles();
  #isJudging = false;
  /** Sandboxes in which a process may run; each function checks whether none is left. */
  readonly #busy = new Map<symbol, () => boolean>();
  /** Counts the commands that have begun. */
  #begun = 0;
  /** Value of `#begun` up to which the effects of all commands have been judged, and their set-id bits cleared. */
  readonly #done = { judged: 0, cleared: 0 };
  /** Time of the file system at which the first sandbox was opened. */
  #openedMs = 0;
  /** Later changes are those of the user. */
  #untilMs: UntilMs = Number.POSITIVE_INFINITY;

  constructor(workspacePath: string) {
    this.#workspacePath = workspacePath;
    this.#search = new GitSearch(workspacePath);
    this.#setId = new SetIdSearch(workspacePath);
  }

  /** Opens a sandbox. While no sandbox is open, all repositories belong to the user. */
  async open(environment: Environment): Promise<readonly PathAccess[]> {
    this.#holders += 1;
    return this.#inTurn(async () => {
      if (this.#holders === 1) await this.#accept();
      else await this.#judgeAll();
      return this.#places(environment);
    });
  }

  /**
   * The placeholders of a sandbox have been made. Changes of the git directories up to now are those of the user, and the placeholders,
   * which no watcher reports.
   */
  settle(): void {
    this.#watch();
    if (this.#holders > 1 || this.#busy.size > 0) return;
    for (const { directories } of this.#before.values()) {
      for (const [path, known] of directories) known.fingerprint = fingerprintOf(path);
    }
  }

  /** A command is about to start in a sandbox. @param isEmpty checks whether no process is left in this sandbox */
  begin(sandbox: symbol, isEmpty: () => boolean): void {
    this.#begun += 1;
    this.#busy.set(sandbox, isEmpty);
  }

  /** State for the server after this one. */
  get record(): GuardRecord {
    return recordOf({
      ...{ openedMs: this.#openedMs, repositories: this.#before, git: this.#protected },
      ...{ links: this.#links, fixed: this.#fixed },
    });
  }

  /**
   * Takes over a sandbox of an earlier server, with its state: repositories that are missing there are those of commands. Only for a guard
   * without a sandbox. Paths outside of the workspace and its git directories are left out.
   */
  take(record: GuardRecord, sandbox: symbol): void {
    this.#holders += 1;
    this.begin(sandbox, () => false);
    const { openedMs, repositories, git } = stateIn(record, this.#tops(), { links: this.#links, fixed: this.#fixed });
    this.#openedMs = openedMs;
    for (const [path, known] of repositories) this.#before.set(path, known);
    this.#protected = git;
    this.#watch();
  }

  /** Whether a path lies in the workspace, or in the repository of a worktree. */
  isOwn(path: string): boolean {
    return isWithinOne(this.#tops(), path);
  }

  /** The workspace, and the git directories of a worktree. */
  #tops(): readonly string[] {
    const path = join(this.#workspacePath, '.git');
    const found = statOf(path, lstatSync);
    const kind = found?.isSymbolicLink() ? 'link' : 'file';
    const outside = found?.isDirectory() ? [] : this.#directoriesOf({ path, kind });
    return [this.#workspacePath, ...outside.filter((each) => typeof each === 'string')];
  }

  /** Leaves the sandboxes to the next server. This one makes no further checks. */
  forget(): void {
    this.#unwatch();
    if (guards.get(this.#workspacePath) === this) guards.delete(this.#workspacePath);
  }

  /**
   * Checks the repositories after the end of a sandbox.
   *
   * @param untilMs moment of its end, if the user could change files since then
   */
  end(sandbox: symbol, untilMs?: UntilMs): Promise<void> {
    // From now on, only the user changes a git directory.
    if (this.#holders === 1) this.#unwatch();
    return this.#inTurn(() => this.#after(sandbox, untilMs, () => this.#judgeAll()));
  }

  /**
   * A sandbox has ended with all its processes.
   *
   * @param release removes its placeholders
   * @param untilMs see `end`
   */
  async close(sandbox: symbol, release: () => void, untilMs?: UntilMs): Promise<void> {
    await this.#inTurn(async () => {
      try {
        await this.#after(sandbox, untilMs, async () => {
          await this.#judgeAll();
          await this.#clearAll(true);
        });
      } finally {
        release();
        this.#holders -= 1;
        if (this.#holders === 0) this.#unwatch();
      }
    });
  }

  async #after(sandbox: symbol, untilMs: UntilMs = Number.POSITIVE_INFINITY, work: () => Promise<void>): Promise<void> {
    this.#busy.delete(sandbox);
    this.#untilMs = untilMs;
    try {
      await work();
    } finally {
      this.#untilMs = Number.POSITIVE_INFINITY;
    }
  }

  /** Judges the repositories, unless no process has run since the last search began. */
  async #judgeAll(): Promise<void> {
    await this.#unlessDone('judged', async () => {
      this.#report(await this.#judge());
      return true;
    });
  }

  /** Clears set-id bits, unless no process has run since the last search began. @param isLast searches a large workspace, too */
  async #clearAll(isLast: boolean): Promise<void> {
    await this.#unlessDone('cleared', async () => {
      const period = { sinceMs: this.#openedMs, untilMs: this.#untilMs };
      const paths = await (isLast ? this.#setId.clear(period) : this.#setId.clearPromptly(period));
      if (!paths) return false;
      this.#report(paths.map((path) => ({ path, what: 'set-id bit', isCleared: true as const })));
      return true;
    });
  }

  /** @param work whether it is complete */
  async #unlessDone(key: 'judged' | 'cleared', work: () => Promise<boolean>): Promise<void> {
    const begun = this.#begun;
    for (const [sandbox, isEmpty] of this.#busy) if (isEmpty()) this.#busy.delete(sandbox);
    const isQuiet = this.#busy.size === 0;
    if (isQuiet && this.#done[key] === begun) return;
    const isComplete = await work();
    this.#done[key] = isQuiet && isComplete ? begun : -1;
  }

  /**
   * Judges a git directory as soon as a process in the sandbox, or the user, changes a name that git follows: of those that can be made,
   * `commondir` and links, no mount can close one.
   */
  #watch(): void {
    if (this.#watchers.length > 0) return;
    for (const { path } of this.#protected.slice(0, maxDetailed)) {
      try {
        const watcher = watch(path, { persistent: false }, (_, name) => {
          if (name !== null && isWatched(name)) this.#judgeSoon();
        });
        // A directory that is gone, or no watch left: the search after the command judges it.
        watcher.on('error', () => watcher.close());
        this.#watchers.push(watcher);
      } catch {
        return;
      }
    }
  }

  #unwatch(): void {
    for (const watcher of this.#watchers.splice(0)) watcher.close();
  }

  #judgeSoon(): void {
    if (this.#isJudging) return;
    this.#isJudging = true;
    void this.#inTurn(async () => {
      this.#isJudging = false;
      if (this.#holders > 0) this.#report(await this.#judgeKnown());
    }).catch(() => undefined);
  }

  /** Judges the repositories after a command. In a large workspace findings of this command come with a later one. */
  async examine(): Promise<readonly GitFinding[]> {
    const isPrompt = this.#search.size <= maxPrompt;
    const work = this.#inTurn(async () => {
      await this.#judgeAll();
      // In a workspace of many entries once, when the sandbox has ended.
      if (isPrompt) await this.#clearAll(false);
    });
    if (isPrompt) await work;
    return this.findings();
  }

  /** Checks the repositories at once. The next command reports the findings. */
  judge(): Promise<void> {
    return this.#inTurn(() => this.#judgeAll());
  }

  /** Takes the findings that no command has reported. */
  findings(): readonly GitFinding[] {
    return this.#pending.splice(0);
  }

  /** Changes when the protection of an open sandbox may have gone: a file was replaced outside of it. */
  fingerprint(): string {
    return this.#protected.map(({ path }) => fingerprintOf(path)).join('\n');
  }

  #report(findings: readonly GitFinding[]): void {
    for (const finding of findings) this.#pending.push(finding);
  }

  #inTurn<T>(act: () => Promise<T>): Promise<T> {
    const work = this.#work.then(act);
    this.#work = work.catch(() => undefined);
    return work;
  }

  async #accept(): Promise<void> {
    this.#openedMs = Date.now() - tickMs;
    const entries = await this.#search.find();
    this.#fixed.clear();
    this.#links.clear();
    this.#before.clear();
    const made = new Map(this.#made);
    this.#made.clear();
    for (const entry of entries) {
      const key = keyOf(entry.path);
      const identity = identityOf(entry);
      const earlier = made.get(key);
      if (earlier?.identity === identity && isUnchanged(earlier)) {
        this.#made.set(key, earlier);
        continue;
      }
      const known: KnownRepository = { identity, directories: new Map() };
      for (const path of this.#directoriesOf(entry)) {
        await this.#links.accept(path);
        known.directories.set(path, { fingerprint: '', state: stateOf(path) });
      }
      this.#before.set(key, known);
    }
    this.#protected = this.#gitDirectories(entries.filter(({ path }) => this.#before.has(keyOf(path))));
  }

  /** Git directories that a repository uses: in the workspace, or its own repository of a worktree. */
  #directoriesOf(entry: GitEntry): readonly BytePath[] {
    const { path, kind } = entry;
    if (typeof path !== 'string') return kind === 'directory' || kind === 'bare' ? [path] : [];
    const start = kind === 'file' || kind === 'link' ? targetOf(path, kind) : path;
    if (start === undefined) return [];
    const common = commonOf(start);
    const own = common !== undefined && path === join(this.#workspacePath, '.git') && isWorktreeOf(common, start, path);
    const found = common === undefined ? [start] : [start, common];
    const used = own ? found : found.filter((each) => isWithin(this.#workspacePath, each));
    return used.flatMap((each) => [each, ...modulesOf(each)]);
  }

  #gitDirectories(entries: readonly GitEntry[]): readonly GitDirectory[] {
    const tops = new Map<string, Set<string>>();
    for (const entry of entries) {
      const { path, kind } = entry;
      if (typeof path !== 'string') continue;
      const top = kind === 'bare' ? path : dirname(path);
      for (const each of this.#directoriesOf(entry)) {
        if (typeof each === 'string') tops.set(each, (tops.get(each) ?? new Set()).add(top));
      }
    }
    return [...tops].map(([path, found]) => gitDirectory(path, [...found]));
  }

  /** Git directories of the repository around the workspace. No command can write them, but they may name files of the workspace. */
  #around(): readonly GitDirectory[] {
    if (statOf(join(this.#workspacePath, '.git'), lstatSync)) return [];
    for (let top = dirname(this.#workspacePath); ; top = dirname(top)) {
      const found = statOf(join(top, '.git'), lstatSync);
      if (found) {
        const path = join(top, '.git');
        const start = found.isDirectory() ? path : targetOf(path, found.isSymbolicLink() ? 'link' : 'file');
        const all = start === undefined ? [] : [start, commonOf(start)];
        return all.flatMap((each) => (each === undefined ? [] : [gitDirectory(each, [top])]));
      }
      if (top === dirname(top)) return [];
    }
  }

  #places(environment: Environment): readonly PathAccess[] {
    const detailed = this.#protected.slice(0, maxDetailed);
    const coarse = this.#protected.slice(maxDetailed, maxPlaces);
    const files = [...this.#before.keys()].filter((key) => !key.startsWith('\0') && statOf(key, lstatSync)?.isFile());
    const named = placesOfConfig([...detailed, ...this.#around()], this.#workspacePath, environment);
    const places: readonly PathAccess[] = [
      ...detailed.flatMap((git) => placesOfGit(git, this.#workspacePath)),
      ...coarse.map(({ path }) => ({ path, access: 'read' as const })),
      ...files.slice(0, maxPlaces).map((path) => ({ path, access: 'read' as const })),
      ...named.places,
    ];
    // Links of a later sandbox may be those of a command.
    if (this.#holders === 1) this.#fixed.add(named.links, places);
    return places;
  }

  /** Judges the git directories that were there before, without a search. */
  async #judgeKnown(): Promise<readonly GitFinding[]> {
    const findings: GitFinding[][] = [];
    for (const known of this.#before.values()) {
      for (const [path, { fingerprint }] of known.directories)
        if (fingerprint !== fingerprintOf(path)) findings.push(await this.#repair(path, known));
    }
    return findings.flat();
  }

  async #judge(): Promise<readonly GitFinding[]> {
    const findings: (readonly GitFinding[])[] = [this.#fixed.restore(this.#untilMs)];
    for (const entry of await this.#search.find(true)) {
      const key = keyOf(entry.path);
      const identity = identityOf(entry);
      const known = this.#before.get(key) ?? this.#made.get(key) ?? this.#moved(entry, identity);
      if (known?.identity === identity) {
        for (const [path, { fingerprint }] of known.directories) {
          const isChanged = fingerprint !== fingerprintOf(path);
          findings.push(await (isChanged ? this.#repair(path, known) : this.#links.remove(path, this.#untilMs)));
        }
      } else if (!isMadeAfter(entry.path, this.#untilMs)) findings.push(await this.#judgeNew(entry));
    }
    return findings.flat();
  }

  /** A repository of the user whose directory a command has moved. */
  #moved({ path, kind }: GitEntry, identity: string): KnownRepository | undefined {
    if (kind !== 'directory' && kind !== 'bare') return undefined;
    const earlier = [...this.#before.values()].find((each) => each.identity === identity);
    const [first] = earlier?.directories.values() ?? [];
    if (!first) return undefined;
    const known = { identity, directories: new Map([[path, { ...first, fingerprint: '' }]]) };
    this.#before.set(keyOf(path), known);
    return known;
  }

  async #judgeNew(entry: GitEntry): Promise<readonly GitFinding[]> {
    const { path, kind } = entry;
    const known: KnownRepository = { identity: identityOf(entry), directories: new Map() };
    this.#made.set(keyOf(path), known);
    if (kind === 'directory' || kind === 'bare') return this.#judgeDirectory(path, known);
    const target = typeof path === 'string' ? targetOf(path, kind) : undefined;
    if (target === undefined || !this.#isKnown(target)) {
      return setEntryAside(parentOf(path), '.git', kind === 'file' ? 'leads to another repository' : 'a link');
    }
    return this.#isProtected(target) ? [] : this.#judgeDirectory(target, known);
  }

  /** Judges a git directory that is new, and those that it leads to. */
  async #judgeDirectory(first: BytePath, known: KnownRepository): Promise<readonly GitFinding[]> {
    const findings: GitFinding[][] = [];
    const left = [first];
    for (const path of left) {
      if (known.directories.has(path)) continue;
      findings.push(await this.#repair(path, known));
      if (typeof path !== 'string') continue;
      for (const each of [commonOf(path), ...modulesOf(path), ...worktreesOf(path), ...alternatesOf(path)])
        if (each !== undefined && !this.#isProtected(each)) left.push(each);
    }
    return findings.flat();
  }

  async #repair(path: BytePath, known: KnownRepository): Promise<GitFinding[]> {
    const state = known.directories.get(path)?.state;
    // A command made the directory that took the place of another one: nothing in it was there before.
    const before = state?.directory === directoryOf(path) ? state : undefined;
    const isKnown = (place: string) => this.#isKnown(canonicalPath(place));
    const untilMs = this.#untilMs;
    const findings = [
      ...repairGitDirectory(path, { before, isKnown, untilMs }),
      ...(await this.#links.remove(path, untilMs)),
    ];
    known.directories.set(path, { fingerprint: fingerprintOf(path), state });
    return findings;
  }

  #isProtected(path: string): boolean {
    return this.#protected.some((git) => git.path === path);
  }

  #isKnown(path: string): boolean {
    return isWithin(this.#workspacePath, path) || this.#protected.some((git) => isWithin(git.path, path));
  }
}

const gitDirectory = (path: string, tops: readonly string[]): GitDirectory => ({
  ...{ path, tops },
  isLinked: statOf(join(path, 'commondir'), lstatSync) !== undefined,
});

function identityOf({ path, kind }: GitEntry): string {
  try {
    const { dev, ino } = lstatSync(path);
    const target = typeof path === 'string' && (kind === 'file' || kind === 'link') ? targetOf(path, kind) : '';
    return `${kind} ${dev}:${ino} ${target ?? ''}`;
  } catch {
    return '';
  }
}

const isUnchanged = ({ directories }: KnownRepository): boolean =>
  [...directories].every(([path, { fingerprint }]) => fingerprint === fingerprintOf(path));

const guards = new Map<string, GitGuard>();
const maxGuards = 64;

/** The guard of a workspace. */
export function gitGuardOf(workspacePath: string): GitGuard {
  const guard = guards.get(workspacePath) ?? new GitGuard(workspacePath);
  guards.delete(workspacePath);
  guards.set(workspacePath, guard);
  const [oldest] = guards.keys();
  if (guards.size > maxGuards && oldest !== undefined) guards.delete(oldest);
  return guard;
}
