import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import t, { type Test } from 'tap';
import { lastChanges, openChange, withStackLock } from '../../../src/deploy/apply/index.ts';
import { layoutOf } from '../../../src/deploy/layout.ts';
import { program, programEnvironment } from '../../programs.ts';
import {
  apply,
  type Case,
  copyOf,
  installed,
  journalOf,
  newCase,
  recover,
  stateOf,
  temporaryDirectory,
} from './helpers.ts';
import type { PlanName } from './plans.ts';

/** Children that run at once. */
const atOnce = 3;

interface Child {
  readonly signal: NodeJS.Signals | null;
  readonly state: string;
  /** That it wrote into the journal. */
  readonly lines: number;
}

/** One run of a command, killed after the line of that number; 0: not at all. */
async function run(directory: string, name: PlanName, line: number, failing = ''): Promise<Child> {
  // Without what the test runner puts into every process that is started, which takes longer than the command.
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
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const ended = new Promise<NodeJS.Signals | null>((resolve) => started.once('exit', (_, signal) => resolve(signal)));
  const output = await buffer(started.stdout);
  const [state = '', lines = '0'] = output.toString().trim().split(' ');
  return { signal: await ended, state, lines: Number(lines) };
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

function toldTo({ directory }: Case): readonly string[] {
  const file = join(directory, 'told');
  return existsSync(file) ? readFileSync(file, 'utf8').trim().split('\n') : [];
}

/** Nothing of a killed run lies about: no half-written file, no lock, no reserve, no backup of what was taken back. */
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

function again(made: Case, name: PlanName) {
  const showSecrets = (reveals: readonly string[]) =>
    writeFileSync(join(made.directory, 'told'), reveals.join('\n'), { flag: 'a' });
  return locked(made, () => apply(made, name, { showSecrets }));
}

async function inParallel(count: number, work: (index: number) => Promise<void>): Promise<void> {
  const waiting = Array.from({ length: count }, (_, index) => index + 1);
  const worker = async (): Promise<void> => {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
      const which = next;
      await work(which).catch((cause: unknown) => {
        throw new Error(`kill ${which} of ${count}`, { cause });
      });
    }
  };
  await Promise.all(Array.from({ length: atOnce }, worker));
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
    const { state, lines } = await run(undisturbed.directory, name, 0);
    t.equal(state, 'done');
    t.ok(lines >= 8);
    const expected = stateOf(undisturbed);
    await inParallel(lines, async (line) => {
      const killed = copyOf(from, join(temporaryDirectory(t), `${name}-${line}`));
      t.equal((await run(killed.directory, name, line)).signal, 'SIGKILL');
      for (const moment of momentsOf(killed)) {
        const { outcome } = await again(moment, name);
        assert.equal(outcome.state, 'done');
        assert.deepEqual(stateOf(moment), expected);
        assert.deepEqual([...new Set(toldTo(moment))], reveals, 'a secret that was made is not told');
        mustBeTidy(moment);
      }
      t.pass(`${name} killed at line ${line} of ${lines}`);
    });
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
    const { state, lines } = await run(undone.directory, name, 0, step);
    t.equal(state, 'undone');
    const before = stateOf(undone);
    t.strictSame(before.tree, stateOf(from).tree);
    const done = copyOf(from, join(temporaryDirectory(t), 'done'));
    await apply(done, name);
    const first = 1 + (await undoingLine(from, name, step));
    await inParallel(lines - first + 1, async (index) => {
      const line = first + index - 1;
      const killed = copyOf(from, join(temporaryDirectory(t), `${name}-${line}`));
      t.equal((await run(killed.directory, name, line, step)).signal, 'SIGKILL');
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
    });
  }
});

/** How many lines the journal has when taking back begins. */
async function undoingLine(from: Case, name: PlanName, step: string): Promise<number> {
  const made = copyOf(from, `${from.directory}-counted`);
  let hasFailed = false;
  const { entries } = await apply(made, name, {
    before: (key) => {
      if (hasFailed || key !== step) return;
      hasFailed = true;
      throw new Error('it was told to fail');
    },
  });
  rmSync(made.directory, { recursive: true });
  return entries.findIndex(({ type }) => type === 'undoing');
}
