import fc from 'fast-check';
import t from 'tap';
import { EventLog } from '../../src/events/index.ts';

interface Thing {
  readonly kind: string;
  readonly n: number;
  readonly fill: string;
}

type Step =
  | { readonly do: 'append'; readonly size: number }
  | { readonly do: 'turn' | 'connect' | 'disconnect' | 'restart' };

const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 6, arbitrary: fc.record({ do: fc.constant('append' as const), size: fc.integer({ min: 0, max: 120 }) }) },
  { weight: 2, arbitrary: fc.constant({ do: 'turn' as const }) },
  { weight: 3, arbitrary: fc.constant({ do: 'connect' as const }) },
  { weight: 2, arbitrary: fc.constant({ do: 'disconnect' as const }) },
  { weight: 1, arbitrary: fc.constant({ do: 'restart' as const }) },
);

/** Parses as an EventSource does, keeping the last id as it would. */
class Reader {
  lastEventId: string | undefined;
  readonly seen: (number | 'gap')[] = [];
  leave: (() => void) | undefined;

  read(frames: Uint8Array): void {
    for (const record of Buffer.from(frames).toString().split('\n\n')) {
      if (record === '') continue;
      const field = (name: string) =>
        record
          .split('\n')
          .find((line) => line.startsWith(`${name}: `))
          ?.slice(name.length + 2);
      this.lastEventId = field('id');
      const { n } = JSON.parse(field('data') ?? '') as Thing;
      this.seen.push(field('event') === 'gap' ? 'gap' : n);
    }
  }

  connect(log: EventLog<Thing>): void {
    if (this.leave !== undefined) return;
    for (const frame of log.replay(this.lastEventId)) this.read(frame);
    this.leave = log.subscribe(
      (batch) => this.read(batch),
      () => {},
    );
  }

  disconnect(): void {
    this.leave?.();
    this.leave = undefined;
  }
}

t.test('a resuming reader receives every event exactly once, or a gap', async (t) => {
  const scenario = fc.record({
    steps: fc.array(step, { maxLength: 60 }),
    maxEvents: fc.integer({ min: 1, max: 8 }),
    maxBytes: fc.constantFrom(150, 400, 100_000),
    batch: fc.boolean(),
  });
  await fc.assert(
    fc.asyncProperty(scenario, async ({ steps, maxEvents, maxBytes, batch }) => {
      let epoch = 0;
      const open = () =>
        new EventLog<Thing>({
          maxEvents,
          maxBytes,
          batch,
          epoch: `e${epoch}`,
          gap: () => ({ kind: 'gap', n: -1, fill: '' }),
        });
      let log = open();
      let appended = 0;
      const reader = new Reader();
      for (const each of steps) {
        if (each.do === 'append') {
          log.append({ kind: 'thing', n: appended, fill: 'x'.repeat(each.size) });
          appended += 1;
        } else if (each.do === 'turn') await new Promise((resolve) => setImmediate(resolve));
        else if (each.do === 'connect') reader.connect(log);
        else if (each.do === 'disconnect') reader.disconnect();
        else {
          reader.disconnect();
          epoch += 1;
          log = open();
        }
      }
      await new Promise((resolve) => setImmediate(resolve));
      reader.disconnect();
      let previous: number | undefined;
      let gap = false;
      for (const item of reader.seen) {
        if (item === 'gap') {
          gap = true;
          continue;
        }
        if (previous !== undefined) {
          if (item <= previous) throw new Error(`repeated or reordered: ${reader.seen}`);
          if (item !== previous + 1 && !gap) throw new Error(`lost without a gap: ${reader.seen}`);
        }
        previous = item;
        gap = false;
      }
    }),
    { numRuns: 500 },
  );
  t.pass('held');
});
