/**
 * Automations whose clock and model are controlled by the test. Store,
 * runtime and machines are the real ones.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { AnyActorRef } from 'xstate';
import {
  AgentError,
  ModelError,
  type ModelProvider,
  openStore,
  Runtime,
  type RuntimeOptions,
  type ScheduleStore,
  type Store,
} from '../../src/agent/index.ts';
import { Automations, type AutomationsSettings, type Clock } from '../../src/automations/index.ts';
import type { Automation, AutomationRun } from '../../src/protocol/index.ts';
import { settings as runtimeSettings, scripted } from '../agent/helpers.ts';

export interface Teardown {
  teardown(work: () => unknown): void;
}

export const minute = 60_000;
export const hour = 60 * minute;
export const day = 24 * hour;
export const at = (text: string): number => Date.parse(text);
/** A day on which nothing happens to any clock. */
export const morning = at('2026-07-01T09:00:00Z');

const deadlineMs = 120_000;

/** Polls, a turn of the event loop at a time: nothing here waits for time to pass. */
export async function until<T>(probe: () => T | undefined | false | Promise<T | undefined | false>, what: string) {
  const deadline = performance.now() + deadlineMs;
  for (;;) {
    const found = await probe();
    if (found !== undefined && found !== false) return found;
    if (performance.now() > deadline) throw new Error(`did not happen: ${what}`);
    await nextTurn();
  }
}

export function temporaryDirectory(t: Teardown): string {
  const directory = mkdtempSync(join(tmpdir(), 'oratorio-automations-'));
  t.teardown(() => rmSync(directory, { recursive: true, force: true, maxRetries: 5 }));
  return directory;
}

async function threeTurns(): Promise<void> {
  for (let turn = 0; turn < 3; turn += 1) await nextTurn();
}

/** A wall clock and timers that only the test moves, together or apart. */
export class FakeClock implements Clock {
  #wall: number;
  #monotonic = 0;
  #timers = new Map<number, { readonly at: number; readonly callback: () => void }>();
  #next = 1;
  /** How long timers were asked to wait, at most. */
  longest = 0;

  constructor(wall: number) {
    this.#wall = wall;
  }

  now(): number {
    return this.#wall;
  }

  setTimeout(callback: () => void, milliseconds: number): number {
    this.longest = Math.max(this.longest, milliseconds);
    const timer = this.#next;
    this.#next += 1;
    this.#timers.set(timer, { at: this.#monotonic + milliseconds, callback });
    return timer;
  }

  clearTimeout(timer: unknown): void {
    this.#timers.delete(timer as number);
  }

  /** Timers that wait. */
  get timers(): number {
    return this.#timers.size;
  }

  /** Moves the wall clock without firing timers, as sleep or a change of the clock does. */
  jump(milliseconds: number): void {
    this.#wall += milliseconds;
  }

  jumpTo(wall: number): void {
    this.#wall = wall;
  }

  /** Advances both clocks. Timers fire in order, each at its time, the next once the work of the one before has `settled`. */
  async pass(milliseconds: number, settled: () => Promise<void> = threeTurns): Promise<void> {
    const end = this.#monotonic + milliseconds;
    for (;;) {
      const [first] = [...this.#timers].sort(([, one], [, other]) => one.at - other.at);
      if (!first || first[1].at > end) break;
      const [timer, { at, callback }] = first;
      this.#advance(at);
      this.#timers.delete(timer);
      callback();
      await settled();
    }
    this.#advance(end);
  }

  #advance(monotonic: number): void {
    this.#wall += Math.max(0, monotonic - this.#monotonic);
    this.#monotonic = Math.max(this.#monotonic, monotonic);
  }
}

/** Answer of the model to a prompt. */
export type Answer = (prompt: string, signal: AbortSignal) => Promise<string> | string;

export interface WorldOptions {
  readonly directory?: string;
  readonly clock?: FakeClock;
  readonly settings?: Partial<AutomationsSettings>;
  readonly answer?: Answer;
  readonly provider?: ModelProvider;
  readonly runtime?: Partial<RuntimeOptions>;
  readonly keepActors?: number;
  /** Stands between the scheduler and the real store. */
  readonly schedules?: (real: ScheduleStore) => ScheduleStore;
}

const settings: AutomationsSettings = {
  isEnabled: true,
  maxConcurrentRuns: 3,
  turnTimeoutMs: 30 * minute,
  maxRetries: 3,
  retryInitialDelayMs: 30_000,
  retryMaxDelayMs: 600_000,
};

export class World {
  readonly directory: string;
  readonly clock: FakeClock;
  readonly store: Store;
  readonly runtime: Runtime;
  readonly automations: Automations;
  readonly faults: unknown[] = [];
  /** Prompts that the model has received, in order. */
  readonly prompts: string[] = [];
  /** Prompts whose turns run now. */
  readonly running: string[] = [];
  /** Most that ran at once. */
  most = 0;
  /** States of each automation's machine, in order. */
  readonly states = new Map<string, string[]>();
  readonly actors = new Set<string>();
  answer: Answer;
  #isClosed = false;

  constructor(t: Teardown, options: WorldOptions = {}) {
    this.directory = options.directory ?? temporaryDirectory(t);
    this.clock = options.clock ?? new FakeClock(morning);
    this.answer = options.answer ?? ((prompt) => `done: ${prompt}`);
    this.store = openStore(this.directory, { onFault: (error) => this.faults.push(error) });
    const provider = options.provider ?? this.#model();
    this.runtime = new Runtime({
      workspacePath: '/work',
      store: this.store.threads,
      traces: this.store.traces,
      provider: async () => provider,
      tools: () => [],
      settings: runtimeSettings,
      onBug: (error) => `bug-${this.faults.push(error)}`,
      ...options.runtime,
    });
    this.automations = new Automations({
      workspacePath: '/work',
      schedules: options.schedules?.(this.store.schedules) ?? this.store.schedules,
      runtime: this.runtime,
      settings: { ...settings, ...options.settings },
      onFault: (error) => this.faults.push(error),
      observe: (actor, { id }) => this.#watch(actor, id),
      clock: this.clock,
      ...(options.keepActors !== undefined && { keepActors: options.keepActors }),
    });
    t.teardown(() => this.close());
  }

  static async start(t: Teardown, options: WorldOptions = {}): Promise<World> {
    const world = new World(t, options);
    await world.automations.start();
    return world;
  }

  /** The next process in the same directory, at the same clock. */
  async restart(t: Teardown, options: WorldOptions = {}): Promise<World> {
    await this.close();
    return World.start(t, { directory: this.directory, clock: this.clock, answer: this.answer, ...options });
  }

  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    const ended = this.automations.close();
    await this.runtime.close();
    await ended;
    this.store.close();
  }

  add(kind: Automation['kind'], more: Partial<Parameters<Automations['add']>[1]> = {}): Promise<Automation> {
    return this.automations.add(kind, {
      prompt: 'go',
      enabled: true,
      binding: { mode: 'new' },
      deleteAfterRun: false,
      ...more,
    });
  }

  /** A job that is due at every full hour. */
  hourly(more: Partial<Parameters<Automations['add']>[1]> = {}): Promise<Automation> {
    return this.add('cron', { schedule: { kind: 'cron', expression: '0 * * * *', timeZone: 'UTC' }, ...more });
  }

  /** All its history, oldest due time first. */
  async history(id: string): Promise<readonly AutomationRun[]> {
    return (await this.automations.runs(id, { limit: 500 })).data.toReversed();
  }

  /** Waits until nothing is under way any more. */
  async quiet(): Promise<void> {
    await until(async () => {
      const { countsByState } = await this.automations.state();
      const busy = (countsByState['queued'] ?? 0) + (countsByState['running'] ?? 0);
      return busy === 0 && this.runtime.turns.count === 0;
    }, 'everything has ended');
  }

  /** Advances the clock; each due run ends before the next starts, independent of the speed of the machine. */
  async pass(milliseconds: number): Promise<void> {
    await this.clock.pass(milliseconds, async () => {
      await threeTurns();
      await this.quiet();
    });
    await this.quiet();
  }

  async stateOf(id: string): Promise<Automation['state']> {
    return (await this.automations.read(id)).state;
  }

  #watch(actor: AnyActorRef, id: string): void {
    this.actors.add(id);
    const states = this.states.get(id) ?? [];
    this.states.set(id, states);
    actor.subscribe({
      next: (snapshot: { readonly value: unknown; readonly status: string }) => {
        const path = pathOf(snapshot.value);
        if (states.at(-1) !== path) states.push(path);
      },
      complete: () => this.actors.delete(id),
      error: () => this.actors.delete(id),
    });
  }

  #model(): ModelProvider {
    const world = this;
    return scripted(async function* ({ messages }, signal) {
      const last = messages.findLast(({ role }) => role === 'user');
      const [part] = last?.role === 'user' ? last.content : [];
      const prompt = part?.type === 'text' ? part.text : '';
      world.prompts.push(prompt);
      world.running.push(prompt);
      world.most = Math.max(world.most, world.running.length);
      try {
        yield { type: 'text', text: await world.answer(prompt, signal) };
      } finally {
        world.running.splice(world.running.indexOf(prompt), 1);
      }
    });
  }
}

/** `active.running.working`. */
function pathOf(value: unknown): string {
  const path: string[] = [];
  let rest = value;
  while (typeof rest === 'object' && rest !== null) {
    const [[key, inner] = ['', '']] = Object.entries(rest);
    path.push(key);
    rest = inner;
  }
  return [...path, rest].join('.');
}

/** Model whose answers wait for `open` or for the abort of the request. */
export function gate() {
  let open: () => void = () => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  const answer: Answer = (prompt, signal) =>
    new Promise((resolve, reject) => {
      signal.addEventListener('abort', () => reject(signal.reason), { once: true });
      void opened.then(() => resolve(`done: ${prompt}`));
    });
  return { answer, open: () => open() };
}

export const unreachable = (): never => {
  throw new ModelError('upstreamUnreachable', 'nobody answers');
};

/** Reason of a refusal, as `automationInvalid passed`; `not refused` otherwise. */
export async function refusal(work: Promise<unknown>): Promise<string> {
  try {
    await work;
  } catch (error) {
    if (!(error instanceof AgentError)) throw error;
    const { why } = error.data;
    return typeof why === 'string' ? `${error.reason} ${why}` : error.reason;
  }
  return 'not refused';
}
