/** Random turns that die and are resumed while the user edits, with the state of the workspace after each part of them. */
import { createHash } from 'node:crypto';
import {
  appendFileSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { type KnownWork, LocalEngines, type TurnPlace, WorkspaceCheckpoints } from '../../src/checkpoints/index.ts';
import { racyMs } from '../../src/checkpoints/limits.ts';
import { operations } from './git-programs.ts';
import { PlainRepository, wholeRepository } from './plain-repository.ts';
import { limits, stateOf } from './tree-of-files.ts';

export type Random = (below: number) => number;

/** State of every file, and of every part of a repository, by a name. */
export type State = ReadonlyMap<string, string>;

/** Changes of a turn or of the user, without a break. */
export interface Segment {
  readonly by: 'turn' | 'user';
  readonly state: State;
}

/** Death of a turn: in a call, or between two calls; with or without stored calls. */
export interface Death {
  readonly isInCall: boolean;
  readonly hasCalls: boolean;
}

export interface ResumedTurn {
  readonly before: State;
  readonly segments: readonly Segment[];
  readonly deaths: readonly Death[];
  /** Paths that were missing when a death was marked: the time of a removal is not known. */
  readonly missing: ReadonlySet<string>;
  /** Files that the user wrote again, perhaps with the same content. */
  readonly rewritten: ReadonlySet<string>;
}

const fileKinds = ['append', 'remove', 'make files', 'rename', 'mode', 'link'] as const;
const gitKinds = Object.keys(operations).filter((kind) => !fileKinds.some((each) => each === kind));

/** Name of a state's part that belongs to a repository. */
export const isGit = (name: string): boolean => name.startsWith('git ');

/** Reads the state of a workspace, apart from the code under test. */
export function stateIn(root: string): State {
  const state = new Map<string, string>();
  for (const line of stateOf(root)) {
    const [, path = '', entry = ''] = /^\/(.*?) ((?:file|directory|link) .*)$/s.exec(line) ?? [];
    state.set(Buffer.from(path, 'latin1').toString(), entry);
  }
  for (const directory of ['', ...readdirSync(root).filter((name) => existsSync(join(root, name, '.git')))]) {
    const repository = PlainRepository.at(join(root, directory));
    if (!repository) continue;
    const [refs, stash, index, files] = JSON.parse(wholeRepository(repository)) as [
      string[][],
      string,
      unknown,
      string[],
    ];
    const add = (part: string, text: string) => state.set(`git ${directory}:${part}`, text);
    for (const [name = '', object = ''] of refs) add(name, object);
    add('stash', stash);
    add('index', JSON.stringify(index));
    for (const file of files) add(file.slice(0, file.indexOf('\n')), file);
  }
  return state;
}

/** Names of the parts in which two states differ. */
export const differing = (a: State, b: State): string[] =>
  [...new Set([...a.keys(), ...b.keys()])].filter((name) => a.get(name) !== b.get(name)).sort();

/** Opens the checkpoints of a workspace as a server does at its start. */
export const openCheckpoints = (directory: string, workOf?: (threadId: string) => KnownWork | undefined) =>
  new WorkspaceCheckpoints({
    ...{ directory, limits, workOf, engines: new LocalEngines() },
    gitEnvironment: { PATH: process.env['PATH'] ?? '' },
    rollback: () => {},
    isInUse: () => false,
  });

/** Resolves when the clock of the file system has passed a moment. */
export async function clockAfter(directory: string, at: number): Promise<void> {
  const probe = join(directory, 'probe');
  do {
    await pause(1);
    writeFileSync(probe, '');
  } while (Math.floor(statSync(probe).ctimeMs) <= at);
}

/** Runs one turn with its deaths, and the edits of the user meanwhile. */
export class ResumedTurnProgram {
  readonly #root: string;
  readonly #stores: string;
  readonly #random: Random;
  readonly #written: Record<string, string> = {};
  readonly #segments: Segment[] = [];
  readonly #deaths: Death[] = [];
  readonly #missing = new Set<string>();
  readonly #rewritten = new Set<string>();
  readonly #place: TurnPlace;
  readonly #before: State;
  #checkpoints: WorkspaceCheckpoints;
  #lastWorkedAt = 0;

  constructor(
    { root, stores }: { readonly root: string; readonly stores: string },
    { threadId, random, checkpoints }: { threadId: string; random: Random; checkpoints: WorkspaceCheckpoints },
  ) {
    this.#root = root;
    this.#stores = stores;
    this.#random = random;
    this.#checkpoints = checkpoints;
    this.#before = stateIn(root);
    this.#place = { threadId, turnId: 'turn_001', workspacePath: root };
  }

  /** @returns the turn, and the checkpoints of the server that ended it */
  async run(): Promise<ResumedTurn & { readonly checkpoints: WorkspaceCheckpoints }> {
    const random = this.#random;
    this.#checkpoints.begin(this.#place);
    await this.#checkpoints.secure(this.#place);
    for (let left = 1 + random(2); left > 0; left -= 1) await this.#die(random(6) === 0);
    if (random(6) > 0) {
      await this.#checkpoints.secure(this.#place);
      this.#work()();
    }
    await this.#checkpoints.settle(this.#place);
    if (random(3) === 0) this.#edit();
    return {
      ...{
        before: this.#before,
        segments: this.#segments,
        deaths: this.#deaths,
        missing: this.#missing,
        rewritten: this.#rewritten,
      },
      checkpoints: this.#checkpoints,
    };
  }

  /** The server dies, and the next one resumes the turn. @param isIdle whether the turn has no call until its next death or end */
  async #die(isIdle: boolean): Promise<void> {
    const random = this.#random;
    await this.#checkpoints.secure(this.#place);
    const death = { isInCall: random(4) === 0, hasCalls: random(2) === 0 };
    this.#deaths.push(death);
    const end = this.#work();
    if (!death.isInCall) end();
    const at = Date.now();
    if (!death.isInCall) this.#lastWorkedAt = at;
    await this.#checkpoints.close();
    await clockAfter(this.#stores, at);
    this.#edit();
    await clockAfter(this.#stores, at + racyMs);
    const known = { lastWorkedAt: this.#lastWorkedAt, isWorking: death.isInCall, written: this.#written };
    this.#checkpoints = openCheckpoints(this.#stores, death.hasCalls ? () => known : undefined);
    this.#checkpoints.resume(this.#place, isIdle ? 'certain' : 'possible');
    await this.#checkpoints.recovered();
    const now = stateIn(this.#root);
    for (const state of [this.#before, ...this.#segments.map((segment) => segment.state)]) {
      for (const path of state.keys()) if (!now.has(path)) this.#missing.add(path);
    }
    if (!isIdle) this.#edit();
  }

  /** A call of the turn. @returns notes its end */
  #work(): () => void {
    const random = this.#random;
    const end = this.#checkpoints.working(this.#place);
    for (let left = 1 + random(4); left > 0; left -= 1) this.#operate(random(3) === 0);
    if (random(2) === 0) {
      const path = join(this.#root, `tool${random(3)}/file.txt`);
      const content = `${random(1_000_000)}\n`;
      mkdirSync(join(path, '..'), { recursive: true });
      writeFileSync(path, content);
      this.#written[path] = createHash('sha256').update(content).digest('hex');
    }
    this.#segments.push({ by: 'turn', state: stateIn(this.#root) });
    return end;
  }

  #operate(isOfGit: boolean): void {
    const random = this.#random;
    const kinds: readonly string[] = isOfGit ? gitKinds : fileKinds;
    const kind = kinds[random(kinds.length)] as keyof typeof operations;
    operations[kind]({ random, root: this.#root, git: new PlainRepository(this.#root) });
  }

  /** The user edits files of the user's own, sometimes those of the turn, and seldom the repository. */
  #edit(): void {
    const random = this.#random;
    const at = (name: string) => join(this.#root, name);
    const edits: readonly (() => void)[] = [
      () => writeFileSync(at(`mine${random(4)}.txt`), `${random(1_000)}\n`),
      () => appendFileSync(at(`mine${random(4)}.txt`), `${random(1_000)}\n`),
      () => mkdirSync(at(`mine${random(3)}/dir`), { recursive: true }),
      () => rmSync(at(`mine${random(8)}.txt`), { force: true }),
      () => existsSync(at('mine0.txt')) && renameSync(at('mine0.txt'), at(`mine${random(4)}.txt`)),
      () => this.#operate(false),
    ];
    const gentle = edits.slice(0, 3);
    const from = random(3) === 0 ? edits : gentle;
    const stamps = this.#stamps();
    for (let left = random(3); left > 0; left -= 1) from[random(from.length)]?.();
    if (random(8) === 0) this.#operate(true);
    for (const [name, stamp] of this.#stamps()) if (stamps.get(name) !== stamp) this.#rewritten.add(name);
    this.#segments.push({ by: 'user', state: stateIn(this.#root) });
  }

  /** Identity and time of each file. */
  #stamps(): ReadonlyMap<string, string> {
    const names = readdirSync(this.#root, { recursive: true, encoding: 'utf8' });
    const stamps = names
      .filter((name) => !/(^|\/)\.git(\/|$)/.test(name))
      .map((name) => [name, lstatSync(join(this.#root, name))] as const);
    return new Map(
      stamps.flatMap(([name, stats]) => (stats.isDirectory() ? [] : [[name, `${stats.ino} ${stats.ctimeMs}`]])),
    );
  }
}
