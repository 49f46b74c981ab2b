/**
 * A scheduler with a given number of jobs, in a process of its own: how long it takes to start, the cost of a tick, how long it holds the event loop up when many are due at once. Prints its figures as one line of JSON.
 *
 *     automations.ts JOBS DUE [actors]
 *
 * `DUE` of them are due at the start. `actors`: every job has its actor, as if they were few.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { MemoryStore, openStore, Runtime, type StoredAutomation } from '../../src/agent/index.ts';
import { Automations } from '../../src/automations/index.ts';

const [count = 10_000, due = 0] = process.argv.slice(2, 4).map(Number);
const keepsActors = process.argv[4] === 'actors';
const directory = mkdtempSync(join(tmpdir(), 'oratorio-bench-automations-'));
const hour = 3_600_000;

const store = openStore(directory);
const now = Date.now();
const expressions = ['*/7 * * * *', '30 7 * * 1-5', '0 0 29 2 *', '15 10,14 * * *'];

function row(number: number): StoredAutomation {
  const isDue = number < due;
  return {
    id: `job_${number}`,
    kind: 'cron',
    name: `job ${number}`,
    prompt: 'look around',
    schedule: isDue
      ? { kind: 'every', everyMs: 24 * hour }
      : { kind: 'cron', expression: expressions[number % 4] ?? '', timeZone: 'Europe/Berlin' },
    scheduleText: 'again and again',
    enabled: true,
    binding: { mode: 'new' },
    deleteAfterRun: false,
    nextAt: isDue ? now - hour : now + hour + number * 1_000,
    version: 1,
    createdAt: now,
    updatedAt: now,
    anchorAt: isDue ? now - 25 * hour : now,
    progress: { failures: 0, lastDueAt: null, retry: null, threadId: null },
  };
}

store.schedules.transaction(() => {
  for (let number = 0; number < count; number += 1) store.schedules.put(row(number));
});

const memory = (): number => {
  globalThis.gc?.();
  return process.memoryUsage().heapUsed / 1024 / 1024;
};

let turns = 0;
const runtime = new Runtime({
  workspacePath: directory,
  store: new MemoryStore(),
  provider: async () => ({
    name: 'instant',
    model: 'instant',
    async stream(_, emit) {
      turns += 1;
      emit({ type: 'text', text: 'done' });
      emit({ type: 'finish', reason: 'stop' });
    },
    listModels: async () => [],
    close: () => undefined,
  }),
  tools: () => [],
  settings: {
    systemPrompt: '',
    maxToolCallRounds: 1,
    maxSessionQueueSize: 1,
    compaction: { isAutomatic: false, contextWindow: 1_000_000, reserveTokens: 1, keepRecentTurns: 1 },
    subAgent: { maxDepth: 0, maxConcurrency: 1, maxToolCallRounds: 1, model: '', exploreModel: '' },
    approvalPolicy: 'interrupt',
    approvalTimeoutMs: 1_000,
    maxRetries: 0,
    quota: { wait: 'never', maxWaitMs: 0 },
    fallbackModels: [],
    budget: { turnUsd: 0, sessionUsd: 0, dayUsd: 0 },
    turns: { resume: 'never', maxResumes: 0, resumeWithinHours: 1, resumeAgents: false },
  },
  onBug: (error) => {
    throw error;
  },
});
const automations = new Automations({
  workspacePath: directory,
  schedules: store.schedules,
  runtime,
  settings: {
    isEnabled: true,
    maxConcurrentRuns: 3,
    turnTimeoutMs: hour,
    maxRetries: 0,
    retryInitialDelayMs: 1_000,
    retryMaxDelayMs: 1_000,
  },
  onFault: (error) => {
    throw error;
  },
  ...(keepsActors && { keepActors: count }),
});

const before = memory();
const lag = monitorEventLoopDelay({ resolution: 1 });
const from = performance.now();
await automations.start();
const startMs = performance.now() - from;
const heapMiB = memory() - before;
lag.enable();
const dueFrom = performance.now();
while (turns < due) await new Promise((resolve) => setTimeout(resolve, 5));
const dueMs = performance.now() - dueFrom;
lag.disable();
const longestBlockMs = lag.max / 1e6;

lag.reset();
lag.enable();
const firstState = performance.now();
const state = await automations.state();
const stateMs = performance.now() - firstState;
lag.disable();
const stateBlockMs = lag.max / 1e6;
const again = performance.now();
if ((await automations.state()) !== state || state.cron.length !== count) throw new Error('the state is not kept');
const againMs = performance.now() - again;

process.stdout.write(
  `${JSON.stringify({ startMs, heapMiB, dueMs, longestBlockMs, stateMs, stateBlockMs, againMs, turns })}\n`,
);
await automations.close();
await runtime.close();
store.close();
rmSync(directory, { recursive: true, force: true });
