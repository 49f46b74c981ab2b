import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import t from 'tap';
import { createActor, toPromise } from 'xstate';
import { askToSleep } from '../../src/hub/actors/ask-to-sleep.ts';
import type { WorkspaceFacts } from '../../src/hub/facts.ts';

t.test('regression: an agent server is asked to sleep after its ports are stored', async (t) => {
  const order: string[] = [];
  const server = createServer((_, response) => {
    order.push('asked');
    response.end(JSON.stringify({ sleeps: true }));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => server.close());
  const { port } = server.address() as AddressInfo;
  const facts = {
    endpoints: { appServerWebSocket: `ws://127.0.0.1:${port}/?token=x` },
    ...{ sleepingPorts: { ports: async () => order.push('listening') }, probe: { timeoutMs: 60_000 } },
  } as unknown as WorkspaceFacts;
  const save = async () => {
    order.push('saving');
    await new Promise(setImmediate);
    order.push('saved');
  };
  const actor = createActor(
    askToSleep({ save }, () => facts),
    {
      input: { workspacePath: '/w', incarnation: 1, idleStopMs: 0 },
    },
  );
  const answer = toPromise(actor);
  actor.start();
  await answer;
  t.same(order, ['listening', 'saving', 'saved', 'asked']);
});
