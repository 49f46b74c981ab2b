import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { setImmediate as turn } from 'node:timers/promises';
import { openHistory, openStore, type Store, type TraceReader } from '../src/agent/index.ts';
import { defaults, type NewTraceEvent, type TraceType } from '../src/protocol/index.ts';
import { type Benchmark, type Check, type Context, figure, median, until, wait } from './harness.ts';

/** Events of a turn with one tool call, repeated. */
const types: readonly TraceType[] = [
  'turn.started',
  'thinking',
  'tool.started',
  'tool.completed',
  'response',
  'tokens.used',
  'turn.completed',
];
const text = 'The agent has read the file, and says in a sentence or two what it has found in there. '.repeat(2);
const dataOf: Partial<Record<TraceType, NewTraceEvent['data']>> = {
  'turn.completed': { status: 'completed', finishReason: 'stop' },
  'tokens.used': { inputTokens: 1_200, outputTokens: 80, model: 'small' },
};

function eventOf(sessionKey: string, number: number): NewTraceEvent {
  const type = types[number % types.length] ?? 'response';
  const at = new Date(1_760_000_000_000 + number).toISOString();
  const turnId = `turn_${String(Math.floor(number / types.length) + 1).padStart(3, '0')}`;
  const tool = type.startsWith('tool.') ? { tool: 'ReadFile', callId: `call_${number}` } : {};
  return { type, sessionKey, at, turnId, ...tool, durationMs: 12, data: dataOf[type] ?? { text } };
}

/** `perSession` events in each of the sessions, one session after the other as they come to speak. @returns events per second */
async function fill(store: Store, keys: readonly string[], perSession: number): Promise<number> {
  const from = performance.now();
  const atOnce = defaults.agent.traceSliceEvents;
  let made = 0;
  for (let number = 0; number < perSession; number += types.length) {
    for (const key of keys) {
      for (let step = number; step < Math.min(number + types.length, perSession); step += 1, made += 1) {
        store.traces.append(eventOf(key, step));
        if (made % atOnce === atOnce - 1) await turn();
      }
    }
  }
  store.traces.flush();
  return made / ((performance.now() - from) / 1000);
}

/** Milliseconds that `work` takes, again and again: the median, and the longest. */
function looked(work: () => unknown, times = 51): { readonly median: number; readonly longest: number } {
  const all = Array.from({ length: times }, () => {
    const from = performance.now();
    work();
    return performance.now() - from;
  });
  return { median: median(all), longest: Math.max(...all) };
}

const summary = (traces: TraceReader) => [traces.totals(), traces.recent(defaults.dashboard.recentEvents)];

/** Every page of a session, milliseconds each. */
function paged(traces: TraceReader, sessionKey: string, count: number): readonly number[] {
  const pages: number[] = [];
  let seen = 0;
  for (let after: number | undefined = 0; after !== undefined; ) {
    const from = performance.now();
    const { events, next } = traces.events(sessionKey, { after, limit: defaults.dashboard.maxEventsPerPage });
    pages.push(performance.now() - from);
    seen += events.length;
    after = next;
  }
  if (seen !== count) throw new Error(`${count} events were traced, ${seen} were read`);
  return pages;
}

interface Deletion {
  /** Until it is out of sight, its rows are gone, its room is the file system's again. */
  readonly hiddenMs: number;
  readonly goneMs: number;
  readonly shrunkMs: number;
  readonly longestBlockMs: number;
  readonly summaryMs: number;
  readonly freedMiB: number;
}

const sizeOf = (file: string): number => statSync(file, { throwIfNoEntry: false })?.size ?? 0;

async function deleted(store: Store, directory: string, sessionKey: string): Promise<Deletion> {
  const { DatabaseSync } = process.getBuiltinModule('node:sqlite');
  const file = join(directory, 'state.db');
  const other = new DatabaseSync(file, { readOnly: true });
  const remains = other.prepare('SELECT count(*) AS count FROM traceRemains');
  const free = other.prepare('PRAGMA freelist_count');
  const before = sizeOf(file) + sizeOf(`${file}-wal`);
  const delay = monitorEventLoopDelay({ resolution: 1 });
  delay.enable();
  // A block that began before the measurement is not measured.
  await wait(10);
  const from = performance.now();
  const since = () => performance.now() - from;
  store.traces.deleteSession(sessionKey);
  const hiddenMs = since();
  await turn();
  const summaryMs = looked(() => summary(store.traces), 1).longest;
  const goneMs = await until('deletion', 60_000, 1, async () => (remains.get()?.['count'] === 0 ? since() : undefined));
  const shrunkMs = await until('vacuum', 60_000, 1, async () =>
    free.get()?.['freelist_count'] === 0 && sizeOf(`${file}-wal`) === 0 ? since() : undefined,
  );
  delay.disable();
  other.close();
  const freedMiB = (before - sizeOf(file) - sizeOf(`${file}-wal`)) / 1_048_576;
  return { hiddenMs, goneMs, shrunkMs, longestBlockMs: delay.max / 1e6, summaryMs, freedMiB };
}

async function run({ quick, rounds }: Context) {
  const directory = mkdtempSync(join(tmpdir(), 'oratorio-bench-traces-'));
  const store = openStore(directory);
  try {
    const sessions = quick ? 1_000 : 10_000;
    const events = sessions * 100;
    const keys = Array.from({ length: sessions }, (_, number) => `thread_${number}`);
    const rate = await fill(store, keys, 100);
    const own = looked(() => summary(store.traces));
    const history = openHistory(directory);
    const view = history.traces;
    const foreign = looked(() => summary(view));
    const listed = looked(() => store.traces.sessions({ limit: defaults.dashboard.sessionsPerPage }));
    const searched = looked(() => store.traces.sessions({ limit: 100, text: 'nowhere' }), 5);
    const long = 50_000;
    await fill(store, ['long'], long);
    const pages = Array.from({ length: rounds }, () => paged(view, 'long', long));
    const found = looked(() => view.events('long', { limit: 100, text: 'nowhere to be found' }), 5);
    history.close();
    const deletions: Deletion[] = [];
    for (let round = 0; round < rounds; round += 1) {
      await fill(store, ['doomed'], 100_000);
      deletions.push(await deleted(store, directory, 'doomed'));
    }
    const of = (name: keyof Deletion) => median(deletions.map((each) => each[name]));
    const most = (name: keyof Deletion) => Math.max(...deletions.map((each) => each[name]));
    const opened = median(pages.map((times) => times.reduce((sum, ms) => sum + ms, 0)));
    const checks: Check[] = [
      {
        what: `totals and recent events over ${figure(events)} stored events`,
        measured: own.median,
        atMost: 20,
        unit: ' ms',
      },
      { what: 'the same for a viewer in another process', measured: foreign.median, atMost: 20, unit: ' ms' },
      { what: '100 000 events deleted', measured: of('goneMs'), atMost: 1_000, unit: ' ms' },
      { what: 'longest block of the event loop meanwhile', measured: most('longestBlockMs'), atMost: 50, unit: ' ms' },
      { what: 'room given back', measured: of('freedMiB'), atLeast: 10, unit: ' MiB' },
      { what: 'a session of 50 000 events read page by page', measured: opened, atMost: 300, unit: ' ms' },
    ];
    return {
      tables: [
        {
          title: `Traces: ${figure(events)} events in ${figure(sessions)} sessions`,
          columns: ['', 'median', 'longest'],
          rows: [
            ['appended and written, events/s', rate, ''],
            ['totals and 20 recent events, ms', own.median, own.longest],
            ['the same in another process, ms', foreign.median, foreign.longest],
            ['first page of sessions, ms', listed.median, listed.longest],
            ['a text found in no session, ms', searched.median, searched.longest],
            [
              '50 000 events page by page, ms',
              opened,
              Math.max(...pages.map((times) => times.reduce((sum, ms) => sum + ms, 0))),
            ],
            ['one page of 5 000, ms', median(pages.flat()), Math.max(...pages.flat())],
            ['one look for a text that is not there, ms', found.median, found.longest],
            ['100 000 events out of sight, ms', of('hiddenMs'), most('hiddenMs')],
            ['100 000 events deleted, ms', of('goneMs'), most('goneMs')],
            ['and their room given back, ms', of('shrunkMs'), most('shrunkMs')],
            ['totals and recent right after the deletion, ms', of('summaryMs'), most('summaryMs')],
            ['longest block of the event loop, ms', of('longestBlockMs'), most('longestBlockMs')],
            ['the files are smaller by, MiB', of('freedMiB'), most('freedMiB')],
          ],
        },
      ],
      checks,
    };
  } finally {
    store.close();
    rmSync(directory, { recursive: true, force: true });
  }
}

export const traces: Benchmark = { name: 'traces', title: 'Traces of a workspace', run };
