/**
 * Trace events through the store of a workspace: `trace-rate.ts DIRECTORY EVENTS_PER_SECOND SECONDS`. First at a steady
 * rate, then as many as it takes. Prints one JSON line; every event is on the disk by then.
 */
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { setImmediate as turn } from 'node:timers/promises';
import { openStore, type Store } from '../../src/agent/index.ts';
import type { NewTraceEvent } from '../../src/protocol/index.ts';

const [directory = '', rate = '100000', seconds = '2'] = process.argv.slice(2);
const sessions = 20;
const mostAtOnce = 500;

let made = 0;
function nextEvent(at: string): NewTraceEvent {
  made += 1;
  const data = { text: 'The agent has read the file, and says in a sentence or two what it has found in there.' };
  return { type: 'response', sessionKey: `thread_${made % sessions}`, at, turnId: 'turn_001', durationMs: 12, data };
}

function append(store: Store, count: number): void {
  const at = new Date().toISOString();
  for (let index = 0; index < count; index += 1) store.traces.append(nextEvent(at));
}

let stored = 0;

/** Waits until all of it is on the disk. */
async function settled(): Promise<void> {
  while (stored < made) await turn();
}

/** Writes the due events in every turn of the event loop. Resolves with events per second. */
async function steadily(store: Store, perSecond: number, ms: number): Promise<number> {
  const from = performance.now();
  let done = 0;
  for (let elapsed = 0; elapsed < ms; elapsed = performance.now() - from) {
    const due = Math.min(Math.floor((elapsed * perSecond) / 1000) - done, mostAtOnce);
    append(store, due);
    done += due;
    await turn();
  }
  await settled();
  return done / ((performance.now() - from) / 1000);
}

/** A slice of the store in every turn of the event loop. */
async function flatOut(store: Store, ms: number): Promise<number> {
  const from = performance.now();
  let done = 0;
  for (; performance.now() - from < ms; done += mostAtOnce) {
    append(store, mostAtOnce);
    await turn();
  }
  await settled();
  return done / ((performance.now() - from) / 1000);
}

const store = openStore(directory);
store.traces.subscribe((events) => {
  stored += events.length;
});
const ms = Number(seconds) * 1000;
await flatOut(store, 500);
const delay = monitorEventLoopDelay({ resolution: 1 });
delay.enable();
const steady = await steadily(store, Number(rate), ms);
delay.disable();
const most = await flatOut(store, ms);
const kept = store.traces.sessions({ limit: sessions }).reduce((sum, { eventCount }) => sum + eventCount, 0);
const { dropped } = store.traces;
if (kept + dropped !== made) throw new Error(`${made} events were traced, ${kept} are there, ${dropped} were dropped`);
store.close();
console.log(JSON.stringify({ steady, most, dropped, longestBlockMs: delay.max / 1e6 }));
process.exit(0);
