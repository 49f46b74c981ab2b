/**
 * Kills at every line of the journal. One run records the files that a kill leaves: it copies all files after each line; at
 * three lines of each run a process is killed for comparison, because a process costs ten times as much as a copy.
 */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { type JournalEntry, lastChanges, openChange, withStackLock } from '../../../src/deploy/apply/index.ts';
import { layoutOf } from '../../../src/deploy/layout.ts';
import { program, programEnvironment } from '../../programs.ts';
import {
  apply,
  type Case,
  copyOf,
  installed,
  journalOf,
  linesOf,
  newCase,
  recover,
  stateOf,
  temporaryDirectory,
} from './helpers.ts';
import type { PlanName } from './plans.ts';

/** One run of a command in a process, which is killed after the line of that number. Resolves with the signal that ended it. */
async function run(directory: string, name: PlanName, line: number, failing = ''): Promise<NodeJS.Signals | null> {
  // Without the code that the test runner puts into every process, which takes longer than the command.
  const command = [
    '-u',
    'NODE_OPTIONS',
    process.execPath,
    program('test/deploy/apply/kill-child.ts'),
    directory,
    name,
    String(line),
    failing,
  ];
  const started = spawn('env', command, {
    env: { ...programEnvironment, NODE_NO_WARNINGS: '1' },
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  const [, signal] = (await once(started, 'exit')) as [number | null, NodeJS.Signals | null];
  return signal;
}

/**
 * States that a kill at one place may leave: that very moment, and the one before it, with the step done and half of
 * the line on disk.
 */
function momentsOf(killed: Case): readonly Case[] {
  const text = readFileSync(journalOf(killed), 'utf8');
  const lastLine = text.lastIndexOf('\n', text.length - 2) + 1;
  const torn = copyOf(killed, `${killed.directory}-torn`);
  writeFileSync(journalOf(torn), text.slice(0, lastLine + Math.ceil((text.length - lastLine) / 2)), { mode: 0o600 });
  return [torn, killed];
}

function printedSecrets({ directory }: Case): readonly string[] {
  const file = join(directory, 'secrets-shown');
  return existsSync(file) ? readFileSync(file, 'utf8').trim().split('\n') : [];
}

/** Nothing of a killed run lies about: no half-written file, no lock, no reserve, no backup of undone changes. */
function mustBeTidy({ engine }: Case): void {
  const { state, backups, directory } = layoutOf(engine.stack);
  const ours = readdirSync(state).filter((name) => !['backup', 'images.json', 'journal.jsonl', 'lock'].includes(name));
  const everywhere = readdirSync(directory, { recursive: true, encoding: 'utf8' });
  const litter = everywhere.filter((name) => /\.tmp$|\.half$|\/reserve$/.test(name));
  assert.deepEqual([...ours, ...litter], [], 'something lies about');
  const ended = new Set(lastChanges(layoutOf(directory), 300).map(({ change }) => change));
  const stray = readdirSync(backups).filter((name) => !ended.has(name));
  assert.deepEqual(stray, [], 'a backup without a change');
  assert.equal(openChange(layoutOf(directory)), null, 'a change is open');
}

/** In this process, with the lock that the killed one held. */
function locked<T>({ engine }: Case, work: () => Promise<T>): Promise<T> {
  const options = { command: 'again', waitMs: 0, signal: new AbortController().signal };
  return withStackLock(layoutOf(engine.stack), options, work);
}

function again(made: Case, name: PlanName, options: Parameters<typeof apply>[2] = {}) {
  const showSecrets = (reveals: readonly string[]) =>
    writeFileSync(join(made.directory, 'secrets-shown'), `${reveals.join('\n')}\n`, { flag: 'a' });
  return locked(made, () => apply(made, name, { ...options, showSecrets }));
}

/** Lets the step of this name fail when it comes first. */
function failsOnce(step: string): (key: string) => void {
  let hasFailed = false;
  return (key) => {
    if (hasFailed || key !== step) return;
    hasFailed = true;
    throw new Error('it was told to fail');
  };
}

const linesIn = (made: Case): number => (existsSync(journalOf(made)) ? linesOf(made).length : 0);

interface Recorded {
  readonly entries: readonly JournalEntry[];
  /** States that a kill leaves after each line of the journal: the files at the moment when the line is on disk. */
  readonly kills: readonly Case[];
}

/** Carries a plan out in this process, and copies everything after each line. */
async function record(t: Test, from: Case, name: PlanName, step = ''): Promise<Recorded> {
  const directory = temporaryDirectory(t);
  const made = copyOf(from, join(directory, 'made'));
  const kills: Case[] = [];
  const { entries } = await again(made, name, {
    before: failsOnce(step),
    onJournal: () => {
      kills.push(copyOf(made, join(directory, `${name}-${kills.length + 1}`)));
    },
  });
  return { entries, kills };
}

/** True for the first line of a range, one in the middle and the last. */
const isKilled = (line: number, first: number, last: number): boolean =>
  [first, Math.floor((first + last) / 2), last].includes(line);

interface Kill {
  readonly from: Case;
  readonly name: PlanName;
  readonly recorded: Case;
  readonly line: number;
  readonly step?: string;
}

/** Kills a process after one line, and checks that it leaves the state recorded for this line. */
async function killOne(t: Test, { from, name, recorded, line, step }: Kill): Promise<void> {
  const killed = copyOf(from, join(temporaryDirectory(t), `${name}-killed`));
  t.equal(await run(killed.directory, name, line, step), 'SIGKILL');
  const leftBy = (made: Case) => ({
    ...stateOf(made),
    journal: linesOf(made).map((text) => JSON.parse(text).type),
    printed: printedSecrets(made),
  });
  t.strictSame(leftBy(killed), leftBy(recorded), `a kill at line ${line} leaves what was recorded`);
}

const shapes = [
  { name: 'init', made: (t: Test) => newCase(temporaryDirectory(t)), reveals: ['AGENT_TOKEN'] },
  { name: 'enable', made: (t: Test) => installed(t), reveals: ['WEBHOOK_SECRET'] },
  { name: 'disable', made: (t: Test) => installed(t, 'enable'), reveals: [] },
  { name: 'upgrade', made: (t: Test) => installed(t), reveals: [] },
] as const;

t.test('a command that was killed at any line of the journal ends the same way when it is repeated', async (t) => {
  for (const { name, made: make, reveals } of shapes) {
    const from = await make(t);
    const undisturbed = copyOf(from, join(temporaryDirectory(t), 'undisturbed'));
    const { outcome, entries } = await again(undisturbed, name);
    const lines = entries.length;
    t.equal(outcome.state, 'done');
    t.ok(lines >= 8);
    const expected = stateOf(undisturbed);
    const { kills } = await record(t, from, name);
    const linesBefore = linesIn(from);
    t.equal(kills.length, lines);
    for (const [index, killed] of kills.entries()) {
      const line = index + 1;
      if (isKilled(line, 1, lines)) await killOne(t, { from, name, recorded: killed, line });
      t.equal(linesOf(killed).length - linesBefore, line);
      for (const moment of momentsOf(killed)) {
        const { outcome } = await again(moment, name);
        assert.equal(outcome.state, 'done');
        assert.deepEqual(stateOf(moment), expected);
        assert.deepEqual([...new Set(printedSecrets(moment))], reveals, 'a secret that was made is not told');
        mustBeTidy(moment);
      }
      t.pass(`${name} killed at line ${line} of ${lines}`);
    }
  }
});

const failing = [
  { name: 'enable', step: 'start:backend', made: (t: Test) => installed(t) },
  { name: 'disable', step: 'checkComposition', made: (t: Test) => installed(t, 'enable') },
  { name: 'upgrade', step: 'awaitHealthy:agent,backend', made: (t: Test) => installed(t) },
] as const;

t.test('killed while it is taken back: the same command goes forward, another takes the rest back', async (t) => {
  for (const { name, step, made: make } of failing) {
    const from = await make(t);
    const undone = copyOf(from, join(temporaryDirectory(t), 'undone'));
    const { outcome, entries: all } = await again(undone, name, { before: failsOnce(step) });
    const lines = all.length;
    t.equal(outcome.state, 'undone');
    const before = stateOf(undone);
    t.strictSame(before.tree, stateOf(from).tree);
    const done = copyOf(from, join(temporaryDirectory(t), 'done'));
    await apply(done, name);
    const { entries, kills } = await record(t, from, name, step);
    const linesBefore = linesIn(from);
    t.equal(kills.length, lines);
    const first = 1 + entries.findIndex(({ type }) => type === 'undoing');
    for (let line = first; line <= lines; line += 1) {
      const killed = kills[line - 1];
      if (!killed) throw new Error(`line ${line} was not recorded`);
      if (isKilled(line, first, lines)) await killOne(t, { from, name, recorded: killed, line, step });
      t.equal(linesOf(killed).length - linesBefore, line);
      for (const moment of momentsOf(killed)) {
        const other = copyOf(moment, `${moment.directory}-other`);
        await locked(other, () => recover(other, 'restart'));
        assert.deepEqual(stateOf(other), before, 'not taken back');
        mustBeTidy(other);
        assert.equal((await again(moment, name)).outcome.state, 'done');
        assert.deepEqual(stateOf(moment), stateOf(done), 'not gone forward');
        mustBeTidy(moment);
      }
      t.pass(`${name} killed at line ${line} of ${lines}`);
    }
  }
});
