import {
  chmodSync,
  copyFileSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Test } from 'tap';
import {
  type ApplyOptions,
  applyPlan,
  type ChangeEvent,
  type JournalEntry,
  type Outcome,
  recoverForeign,
} from '../../../src/deploy/apply/index.ts';
import { layoutOf } from '../../../src/deploy/layout.ts';
import type { Plan, StackCommand } from '../../../src/deploy/stack-plan.ts';
import { FakeEngine, type FakeOptions } from './fake-effects.ts';
import { type PlanName, plans } from './plans.ts';

/**
 * A memory file system where there is one: every line of a journal waits for the disk. `npm test` ends its run by the name of
 * the run, which is part of the directories' names.
 */
const base = existsSync('/dev/shm') ? '/dev/shm' : tmpdir();

export function temporaryDirectory(t: Test): string {
  const directory = mkdtempSync(join(base, `oratorio-apply-${process.env['ORATORIO_TEST_RUN'] ?? ''}`));
  t.teardown(() => rmSync(directory, { recursive: true, force: true }));
  return directory;
}

/** A stack with its engine, in a directory of its own. */
export interface Case {
  readonly directory: string;
  readonly engine: FakeEngine;
}

export function newCase(directory: string): Case {
  mkdirSync(join(directory, 'stack', '.server'), { recursive: true, mode: 0o700 });
  return { directory, engine: new FakeEngine(directory) };
}

export function copyOf({ directory }: Case, to: string): Case {
  copyTree(directory, to);
  return { directory: to, engine: new FakeEngine(to) };
}

/** With the permissions of directories, which `cpSync` leaves to the umask. */
function copyTree(from: string, to: string): void {
  const { mode } = lstatSync(from);
  mkdirSync(to, { recursive: true });
  for (const entry of readdirSync(from, { withFileTypes: true })) {
    const [source, target] = [join(from, entry.name), join(to, entry.name)];
    if (entry.isDirectory()) copyTree(source, target);
    else copyFileSync(source, target);
  }
  chmodSync(to, mode & 0o7777);
}

export interface Applied {
  readonly outcome: Outcome;
  readonly events: readonly ChangeEvent[];
  readonly entries: readonly JournalEntry[];
}

export async function apply(
  { engine }: Case,
  plan: Plan | PlanName,
  options: FakeOptions & Partial<ApplyOptions> = {},
): Promise<Applied> {
  const events: ChangeEvent[] = [];
  const entries: JournalEntry[] = [];
  const outcome = await applyPlan({
    plan: typeof plan === 'string' ? plans[plan](engine.stack) : plan,
    effects: engine.effects(options),
    observe: (event) => events.push(event),
    signal: new AbortController().signal,
    now: () => new Date(),
    ...options,
    onJournal: async (entry) => {
      entries.push(entry);
      await options.onJournal?.(entry);
    },
  });
  return { outcome, events, entries };
}

export function recover({ engine }: Case, command: StackCommand, options: FakeOptions = {}) {
  const layout = layoutOf(engine.stack);
  const effects = engine.effects(options);
  return recoverForeign({ layout, command, effects, observe: () => {}, now: () => new Date() });
}

/** A stack that `init` has set up, and on which `more` was done. */
export async function installed(t: Test, ...more: readonly PlanName[]): Promise<Case> {
  const made = newCase(temporaryDirectory(t));
  for (const name of ['init', ...more] as const) {
    const { outcome } = await apply(made, name);
    if (outcome.state !== 'done') throw outcome.failure;
  }
  return made;
}

/** Every file and directory with its permissions, owner and content; of our own state the files that a plan wrote. */
export function treeOf(root: string): Record<string, string> {
  const tree: Record<string, string> = {};
  const walk = (path: string): void => {
    for (const name of readdirSync(join(root, path)).sort()) {
      const each = path === '' ? name : `${path}/${name}`;
      if (/^\.server\/(journal\.jsonl|backup|lock)/.test(each)) continue;
      const stats = lstatSync(join(root, each));
      const mode = (stats.mode & 0o7777).toString(8);
      const content = stats.isFile() ? readFileSync(join(root, each), 'latin1') : '';
      tree[each] = `${stats.isDirectory() ? 'directory' : 'file'} ${mode} ${stats.uid}:${stats.gid} ${content}`;
      if (stats.isDirectory()) walk(each);
    }
  };
  walk('');
  return tree;
}

/** State that a test may compare: everything but the change's own records. */
export function stateOf({ engine }: Case) {
  return { tree: treeOf(engine.stack), world: engine.world };
}

export function journalOf({ engine }: Case): string {
  return layoutOf(engine.stack).journal;
}

/** Lines of the journal that are on disk. */
export function linesOf(made: Case): readonly string[] {
  const text = readFileSync(journalOf(made), 'utf8');
  return text.split('\n').filter((line) => line !== '');
}
