import { EventLog } from '../src/events/index.ts';
import { defaults } from '../src/protocol/index.ts';
import { median, type Table } from './harness.ts';
import { type BenchEvent, makeEvent } from './peers/events.ts';

const count = 20_000;

/** Nanoseconds of one call, the median of `rounds`. */
function costOf(rounds: number, call: () => unknown): number {
  const times = Array.from({ length: rounds }, () => {
    const from = performance.now();
    for (let index = 0; index < count; index += 1) call();
    return ((performance.now() - from) * 1e6) / count;
  });
  return median(times);
}

/**
 * Measures the server's cost of one event before it is written: a single subscriber bears all of it. The limit fills a text
 * in with `snprintf`.
 *
 * @param rounds repetitions of each row
 */
export function eventTable(rounds: number): Table {
  const log = new EventLog<BenchEvent>({
    maxEvents: defaults.sse.ringEvents,
    maxBytes: defaults.sse.ringBytes,
    gap: () => makeEvent(),
  });
  const event = makeEvent();
  return {
    title: 'One event before it is written, ns',
    columns: ['', 'ns'],
    rows: [
      ['the event is made, with its time', costOf(rounds, () => makeEvent())],
      ['JSON.stringify', costOf(rounds, () => JSON.stringify(event))],
      ['EventLog.append without subscribers: numbered, JSON, framed, kept', costOf(rounds, () => log.append(event))],
    ],
  };
}
