/** The receiver of Stately's tools as the client, over real sockets. */
import { once } from 'node:events';
import {
  createWebSocketReceiver,
  type StatelyActorEvent,
  type StatelyInspectionEvent,
  type StatelySnapshotEvent,
} from '@statelyai/inspect';
import { createInspectorServer } from '@statelyai/inspect/server';
import { EventSource } from 'eventsource';
import t, { type Test } from 'tap';
import { WebSocket } from 'ws';
import { createActor, createMachine } from 'xstate';
import { catalogue } from '../../machines/index.ts';
import { bearer, createServer, loopbackHosts, sse } from '../../src/http/index.ts';
import {
  createRecorder,
  createStatelySource,
  type StatelyMessage,
  statelyMessages,
  statelySocket,
} from '../../src/inspect/index.ts';
import { unusedPort } from '../ports.ts';
import { doorMachine, lampMachine } from './helpers.ts';

/** Events of inspectors: the type of `id` is text, but they send null; a snapshot is any value that can be serialised. */
type Loose<M> = M extends unknown ? Omit<M, 'id' | 'snapshot'> : never;

const machines = { door: doorMachine, lamp: lampMachine };

async function serve(t: Test, adapter: 'node' | 'uws') {
  const recorder = createRecorder({
    machines,
    projections: { door: ({ knocks }: { knocks: number }) => ({ knocks }) },
  });
  const door = createActor(doorMachine, { input: { secret: 'SECRET' } });
  recorder.observe(door, { id: 'd', parent: null, machine: 'door', title: 'Front door' });
  door.start();
  const source = createStatelySource(recorder, machines);
  const faults: unknown[] = [];
  const server = await createServer(
    {
      routes: [{ method: 'GET', path: '/inspect', deadlineMs: 0, handler: () => sse(source, undefined) }],
      webSockets: [
        statelySocket({
          path: '/stately',
          auth: bearer('token'),
          recorder: async () => recorder,
          machines: async () => machines,
          onFault: (error) => faults.push(error),
        }),
      ].map((route) => ({
        ...route,
        auth: ({ query }: { readonly query: URLSearchParams }) => {
          if (query.get('token') !== 'right') throw new Error('no token');
        },
      })),
      hostAllowed: loopbackHosts(),
      errorBody: (error) => error,
      onBug: (error) => faults.push(error),
      limits: { bodyBytes: 1024, deadlineMs: 0, sseBufferBytes: 1 << 20, sseHeartbeatMs: 1_000, sseRetryMs: 100 },
    },
    adapter,
  );
  const { port } = await server.listen({ host: '127.0.0.1', port: 0 });
  t.teardown(async () => {
    recorder.close();
    door.stop();
    await server.close(0);
  });
  return { door, recorder, port, faults };
}

/** Collects until something is there. */
function collector<T>() {
  const seen: T[] = [];
  const waiting = new Set<() => void>();
  return {
    seen,
    add(item: T) {
      seen.push(item);
      for (const check of [...waiting]) check();
    },
    until: (wanted: (items: readonly T[]) => boolean) =>
      new Promise<void>((resolve) => {
        const check = () => {
          if (!wanted(seen)) return;
          waiting.delete(check);
          resolve();
        };
        waiting.add(check);
        check();
      }),
  };
}

for (const adapter of ['node', 'uws'] as const) {
  t.test(`the WebSocket receiver of Stately follows a machine (${adapter})`, async (t) => {
    const { door, port, recorder } = await serve(t, adapter);
    door.send({ type: 'KNOCK' });
    const { seen, add, until } = collector<StatelyInspectionEvent>();
    createWebSocketReceiver({ server: `ws://127.0.0.1:${port}/stately?token=right` }).subscribe(add);
    await until((events) => events.some(({ type }) => type === '@xstate.snapshot'));
    const [actor, lamp] = seen as StatelyActorEvent[];
    t.match(actor, {
      type: '@xstate.actor',
      name: 'Front door',
      sessionId: 'd',
      rootId: 'd',
      snapshot: { status: 'active', value: 'shut', context: { knocks: 1 } },
      _version: String,
    });
    t.match(lamp, { sessionId: 'd/lamp', rootId: 'd', parentId: 'd' });
    const definition = JSON.parse(actor?.definition ?? '');
    t.notOk('context' in definition);
    t.same(
      Object.keys(createMachine(definition).states),
      Object.keys(doorMachine.states),
      'the definition is a machine to XState',
    );

    door.send({ type: 'OPEN' });
    await until((events) => events.length >= 8);
    t.match(seen.slice(-4), [
      { type: '@xstate.event', event: { type: 'OPEN' }, sessionId: 'd', sourceId: undefined },
      { type: '@xstate.snapshot', event: { type: 'OPEN' }, snapshot: { value: 'ajar' } },
      { type: '@xstate.event', event: { type: 'always' } },
      { type: '@xstate.snapshot', snapshot: { value: { open: { hinge: 'dry', bolt: 'out' } } } },
    ]);
    door.send({ type: 'BREAK' });
    await until((events) =>
      events.some((event) => (event as StatelySnapshotEvent).snapshot?.status === 'done' && event.sessionId === 'd'),
    );
    t.notMatch(JSON.stringify(seen), 'SECRET');
    recorder.close();
  });

  t.test(`the event stream has the same messages (${adapter})`, async (t) => {
    const { door, port } = await serve(t, adapter);
    const { seen, add, until } = collector<StatelyInspectionEvent>();
    const source = new EventSource(`http://127.0.0.1:${port}/inspect`);
    t.teardown(() => source.close());
    source.onmessage = ({ data }) => add(JSON.parse(data));
    await until((events) => events.length >= 2);
    door.send({ type: 'BLINK' });
    await until((events) => events.length >= 6);
    t.match(
      seen.slice(2).map((event) => [event.type, event.sessionId, 'sourceId' in event ? event.sourceId : undefined]),
      [
        ['@xstate.event', 'd', undefined],
        ['@xstate.snapshot', 'd', undefined],
        ['@xstate.event', 'd/lamp', 'd'],
        ['@xstate.snapshot', 'd/lamp', undefined],
      ],
    );
  });

  t.test(`a socket without the token is refused, and a closed one is removed (${adapter})`, async (t) => {
    const { port, recorder } = await serve(t, adapter);
    const unauthenticated = new WebSocket(`ws://127.0.0.1:${port}/stately?token=wrong`);
    const [error] = await once(unauthenticated, 'error');
    t.match(error, { message: /Unexpected server response/ });
    const socket = new WebSocket(`ws://127.0.0.1:${port}/stately?token=right`);
    await once(socket, 'message');
    t.equal(recorder.viewers, 1);
    socket.send('ignored');
    socket.close();
    await once(socket, 'close');
    while (recorder.viewers > 0) await new Promise((resolve) => setImmediate(resolve));
    t.equal(recorder.viewers, 0);
  });
}

t.test('the bridge of Stately passes the messages on to its viewer, as docs/inspector.md describes', async (t) => {
  const { door, port } = await serve(t, 'node');
  const bridgePort = await unusedPort();
  const bridge = createInspectorServer({ port: bridgePort, autoOpen: false });
  t.teardown(() => bridge.stop());
  const out = new WebSocket(`ws://127.0.0.1:${bridgePort}`);
  await once(out, 'open');
  const viewer = new WebSocket(`ws://127.0.0.1:${bridgePort}`);
  const { seen, add, until } = collector<{ readonly type: string }>();
  viewer.on('message', (data) => add(JSON.parse(String(data))));
  await once(viewer, 'open');
  createWebSocketReceiver({ server: `ws://127.0.0.1:${port}/stately?token=right` }).subscribe((message) =>
    out.send(JSON.stringify(message)),
  );
  await until((messages) => messages.length >= 2);
  door.send({ type: 'KNOCK' });
  await until((messages) => messages.length >= 4);
  t.same(
    seen.map(({ type }) => type),
    ['@xstate.actor', '@xstate.actor', '@xstate.event', '@xstate.snapshot'],
  );
  for (const socket of [out, viewer]) {
    socket.close();
    await once(socket, 'close');
  }
});

t.test('the sent definition of every machine of the catalogue creates a machine', async (t) => {
  for (const [name, machine] of Object.entries(catalogue)) {
    const messages = statelyMessages({ machines: catalogue, actorOf: () => undefined });
    const [message] = messages({
      type: 'actor',
      id: name,
      parent: null,
      machine: name,
      title: name,
      states: [],
      at: new Date(0),
      projection: {},
      steps: 0,
      since: new Date(0),
      statistics: {},
    });
    // The compiler holds our messages against their types.
    t.ok(message satisfies Loose<StatelyInspectionEvent> | undefined);
    const { definition } = message as Extract<StatelyMessage, { type: '@xstate.actor' }>;
    t.same(Object.keys(createMachine(JSON.parse(definition ?? '')).states), Object.keys(machine.states), name);
  }
});
