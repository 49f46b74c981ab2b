/** One connection for many tabs: leading, following, joining late, taking over. Locks and channel behave as a browser's. */
import t from 'tap';
import { type SharedStreamOptions, shareStream } from '../../src/ui/app/shared-stream.ts';
import type { Connection, StreamEvent, StreamOptions } from '../../src/ui/app/stream.ts';

type ReadOptions = Omit<StreamOptions, 'url' | 'token'>;

/** The used part of the Web Locks API: exclusive locks of one name, waiting in order, given up and stolen. */
function createLocks(): LockManager {
  interface Held {
    readonly steal: () => void;
  }
  let held: Held | null = null;
  const waiting: (() => void)[] = [];
  const next = () => {
    held = null;
    waiting.shift()?.();
  };
  const hold = (callback: () => Promise<unknown>): Promise<unknown> =>
    new Promise((resolve, reject) => {
      const mine: Held = { steal: () => reject(new DOMException('stolen', 'AbortError')) };
      held = mine;
      callback().then(
        (value) => {
          resolve(value);
          if (held === mine) next();
        },
        (error) => {
          reject(error);
          if (held === mine) next();
        },
      );
    });
  const request = (_name: string, options: LockOptions, callback: () => Promise<unknown>): Promise<unknown> => {
    if (options.steal) {
      held?.steal();
      return hold(callback);
    }
    if (!held && waiting.length === 0) return hold(callback);
    return new Promise((resolve, reject) => {
      const start = () => hold(callback).then(resolve, reject);
      waiting.push(start);
      options.signal?.addEventListener('abort', () => {
        const at = waiting.indexOf(start);
        if (at < 0) return;
        waiting.splice(at, 1);
        reject(options.signal?.reason);
      });
    });
  };
  return { request, query: async () => ({}) } as unknown as LockManager;
}

/** Server with one stream, which sends its whole log to each new connection. */
function createServer() {
  const readers = new Set<ReadOptions>();
  const log: StreamEvent[] = [];
  const connections: (string | undefined)[] = [];
  return {
    readers,
    connections,
    say(...texts: string[]): void {
      const events = texts.map((text) => {
        const event = { id: String(log.length + 1), event: 'fact', data: text };
        log.push(event);
        return event;
      });
      for (const reader of readers) reader.onEvents(events);
    },
    read: (options: ReadOptions): Promise<void> =>
      new Promise((resolve) => {
        connections.push(options.lastEventId);
        readers.add(options);
        options.onConnection({ state: 'connecting' });
        options.signal.addEventListener('abort', () => {
          readers.delete(options);
          resolve();
        });
        options.onOpen(options.lastEventId !== undefined);
        options.onConnection({ state: 'live' });
        const missed = log.slice(Number(options.lastEventId ?? 0));
        if (missed.length > 0) options.onEvents(missed);
      }),
  };
}

let names = 0;

function stage() {
  const locks = createLocks();
  const server = createServer();
  names += 1;
  const name = `stream-${process.pid}-${names}`;
  return {
    server,
    open(more: Partial<SharedStreamOptions> = {}) {
      const abort = new AbortController();
      const received: string[] = [];
      const waiters = new Set<() => void>();
      let resets = 0;
      const wake = () => {
        for (const waiter of waiters) waiter();
      };
      const connections: Connection['state'][] = [];
      const stream = shareStream({
        name,
        locks,
        signal: abort.signal,
        read: server.read,
        retain: () => 'yes',
        // Long enough that no tab counts as silent on a slow machine.
        patience: { answerMs: 600_000, silenceMs: 600_000 },
        onEvents: (events) => {
          received.push(...events.map(({ data }) => data));
          wake();
        },
        onReset: () => {
          resets += 1;
          received.length = 0;
        },
        onConnection: ({ state }) => {
          connections.push(state);
          wake();
        },
        ...more,
      });
      t.teardown(() => abort.abort());
      return {
        stream,
        received,
        connections,
        get resets() {
          return resets;
        },
        close: () => abort.abort(),
        /** Resolves when exactly these texts have arrived since the last reset. */
        knows: (...texts: string[]) =>
          new Promise<void>((resolve) => {
            const look = () => {
              if (JSON.stringify(received) !== JSON.stringify(texts)) return;
              waiters.delete(look);
              resolve();
            };
            waiters.add(look);
            look();
          }),
      };
    },
  };
}

t.test('one tab reads; the others receive all events, also earlier ones', async (t) => {
  const { server, open } = stage();
  const first = open();
  server.say('a', 'b');
  await first.knows('a', 'b');
  const second = open();
  await second.knows('a', 'b');
  server.say('c');
  await Promise.all([first.knows('a', 'b', 'c'), second.knows('a', 'b', 'c')]);
  t.equal(server.connections.length, 1);
  t.equal(second.connections.at(-1), 'live');
  t.same(
    second.stream.catchUp()?.map(({ data }) => data),
    ['a', 'b', 'c'],
    'a late listener in a tab receives earlier events',
  );
});

t.test('regression: a listener that joins before the stream has begun waits for its begin', async (t) => {
  const { server, open } = stage();
  open();
  server.say('a');
  const { stream, knows } = open();
  t.equal(stream.catchUp(), null, 'the first tab has not answered this one');
  await knows('a');
  t.same(
    stream.catchUp()?.map(({ data }) => data),
    ['a'],
  );
});

t.test('when the reading tab closes, the next one resumes after its last event', async (t) => {
  const { server, open } = stage();
  const first = open();
  const second = open();
  const third = open();
  server.say('a');
  await Promise.all([first, second, third].map((tab) => tab.knows('a')));
  first.close();
  server.say('b');
  await Promise.all([second, third].map((tab) => tab.knows('a', 'b')));
  second.close();
  server.say('c');
  await third.knows('a', 'b', 'c');
  t.same(server.connections, [undefined, '1', '2']);
  t.equal(third.resets, 1, 'reset only when it joined');
  const late = open();
  await late.knows('a', 'b', 'c');
});

t.test('when earlier events are no longer held, the reader reconnects and all tabs receive all events', async (t) => {
  const { server, open } = stage();
  const first = open();
  const many = Array.from({ length: 20_001 }, (_, index) => String(index));
  server.say(...many);
  await first.knows(...many);
  const second = open();
  await Promise.all([first.knows(...many), second.knows(...many)]);
  t.same(server.connections, [undefined, undefined]);
  t.equal(server.readers.size, 1);
});

t.test('a silent reader loses the lock to a waiting tab', async (t) => {
  const { server, open } = stage();
  const frozen = open({ read: () => new Promise(() => {}) });
  const second = open({ patience: { answerMs: 50, silenceMs: 50 } });
  server.say('a');
  await second.knows('a');
  t.same(frozen.received, []);
});

t.test('a refused token stops its own tab only; the next one reads with its token', async (t) => {
  const { server, open } = stage();
  const refused = open({
    read: async ({ onConnection }) => onConnection({ state: 'refused' }),
  });
  const second = open();
  server.say('a');
  await second.knows('a');
  t.same(refused.connections, ['refused']);
  t.notOk(second.connections.includes('refused'));
});

t.test('without locks each tab reads for itself', async (t) => {
  const { server, open } = stage();
  const tabs = [open({ locks: undefined }), open({ locks: undefined })];
  server.say('a');
  await Promise.all(tabs.map((tab) => tab.knows('a')));
  t.equal(server.connections.length, 2);
});

t.test('an event marked "no" is not retained; one marked "afresh" replaces the earlier ones', async (t) => {
  const { server, open } = stage();
  const retain = ({ data }: StreamEvent) => (data === 'no' ? 'no' : data === 'afresh' ? 'afresh' : 'yes');
  const first = open({ retain });
  server.say('a', 'no', 'afresh', 'b', 'no');
  await first.knows('a', 'no', 'afresh', 'b', 'no');
  t.same(
    first.stream.catchUp()?.map(({ data }) => data),
    ['afresh', 'b'],
  );
});
