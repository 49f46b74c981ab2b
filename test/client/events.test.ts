/** Specification §6.1 and design §4: the stream resumes after the last id, after any failure of the connection. */
import type { ServerResponse } from 'node:http';
import t from 'tap';
import { backoffMs, HubClient, isHubEvent, type ReceivedEvent } from '../../src/client/index.ts';
import { type Answer, fakeHub, hubToken, sendJson } from './fake-hub.ts';

const event = (id: string, kind: string, data: object = {}): string => {
  const record = { kind, at: '2026-01-01T00:00:00.000Z', workspacePath: null, data };
  return `id: ${id}\nevent: ${kind}\ndata: ${JSON.stringify(record)}\n\n`;
};

function open(response: ServerResponse, ...text: string[]): ServerResponse {
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  response.write(`: connected\n\nretry: 10\n\n${text.join('')}`);
  return response;
}

async function against(answer: Answer) {
  const hub = await fakeHub(answer);
  t.teardown(() => hub.close());
  return { hub, client: new HubClient({ apiBaseUrl: hub.baseUrl, token: hubToken }) };
}

t.test('the stream resumes after the last id when the connection breaks, and yields a gap', async (t) => {
  const answers = [
    (response: ServerResponse) => {
      open(response, event('a-1', 'hub.started', { apiBaseUrl: 'http://x', pid: 1 }), event('a-2', 'port.allocated'));
      setImmediate(() => response.destroy());
    },
    (response: ServerResponse) =>
      sendJson(response, 503, { error: { code: 'hubStopping', message: '', details: null } }),
    (response: ServerResponse) => response.destroy(),
    (response: ServerResponse) =>
      open(response, event('b-0', 'hub.gap', { lastEventId: 'a-2', reason: 'otherEpoch' }), event('b-1', 'news.kind')),
  ];
  const { hub, client } = await against((_, response) => answers.shift()?.(response));
  const seen: ReceivedEvent[] = [];
  const lost: string[] = [];
  let opened = 0;
  for await (const received of client.events({ onOpen: () => opened++, onLost: (reason) => lost.push(reason) })) {
    seen.push(received);
    if (received.kind === 'news.kind') break;
  }
  t.strictSame(
    seen.map(({ id, kind }) => `${id} ${kind}`),
    ['a-1 hub.started', 'a-2 port.allocated', 'b-0 hub.gap', 'b-1 news.kind'],
  );
  t.strictSame(
    hub.requests.map(({ headers }) => headers['last-event-id']),
    [undefined, 'a-2', 'a-2', 'a-2'].concat(hub.requests.length > 4 ? ['a-2'] : []).slice(0, hub.requests.length),
  );
  t.equal(opened, 2);
  t.ok(lost.length >= 2, 'every lost connection is reported to the caller');
  const [started] = seen;
  t.ok(started && isHubEvent(started, 'hub.started') && started.data.pid === 1, 'a known kind is typed');
  t.notOk(started && isHubEvent(started, 'appserver.running'));
});

t.test('an event cut by the end of a connection is yielded once', async (t) => {
  const whole = event('a-2', 'port.allocated');
  let connections = 0;
  const { client } = await against((_, response) => {
    connections += 1;
    if (connections > 1) return void open(response, whole, event('a-3', 'hub.stopping')).end();
    open(response, event('a-1', 'port.allocated'), whole.slice(0, 40));
    setImmediate(() => response.destroy());
  });
  const ids: string[] = [];
  for await (const { id } of client.events()) ids.push(id);
  t.strictSame(ids, ['a-1', 'a-2', 'a-3']);
});

t.test('the stream ends after hub.stopping, or continues with the next Hub', async (t) => {
  const next = await fakeHub((_, response) => open(response, event('b-1', 'hub.started')), ['token-of-the-next-hub']);
  t.teardown(() => next.close());
  const { hub, client } = await against((_, response) => open(response, event('a-1', 'hub.stopping')).end());
  const kinds: string[] = [];
  for await (const { kind } of client.events()) kinds.push(kind);
  t.strictSame(kinds, ['hub.stopping']);

  const moving = new HubClient(
    { apiBaseUrl: hub.baseUrl, token: hubToken },
    { relocate: async () => ({ apiBaseUrl: next.baseUrl, token: 'token-of-the-next-hub' }) },
  );
  for await (const { kind } of moving.events({ acrossRestarts: true })) if (kind === 'hub.started') break;
  t.match(next.requests[0]?.headers, { authorization: 'Bearer token-of-the-next-hub', 'last-event-id': 'a-1' });
});

t.test('a failed first connection and a refusal are thrown', async (t) => {
  const { hub, client } = await against((_, response) =>
    sendJson(response, 401, {
      error: { code: 'unauthorized', message: 'The Hub token is missing or invalid.', details: null },
    }),
  );
  await t.rejects(client.events().next(), { name: 'HubRequestError', code: 'unauthorized' });
  await hub.close();
  await t.rejects(client.events().next(), { name: 'HubUnavailableError' });
  const { client: page } = await against((_, response) => response.end('<html>'));
  await t.rejects(page.events().next(), { name: 'HubInvalidResponseError' });
});

t.test('the end of the loop or an abort closes the connection at once', async (t) => {
  const closed: Promise<void>[] = [];
  const { client } = await against((request, response) => {
    closed.push(new Promise((resolve) => request.socket.once('close', () => resolve())));
    open(response, event('a-1', 'hub.started'));
  });
  for await (const _ of client.events()) break;
  await closed[0];
  const controller = new AbortController();
  for await (const _ of client.events({ signal: controller.signal, lastEventId: 'a-0' })) controller.abort();
  await closed[1];
  const dead = new AbortController();
  dead.abort();
  for await (const _ of client.events({ signal: dead.signal })) t.fail('nothing is read');
  t.equal(closed.length, 2);
});

t.test('the pause before a reconnection doubles up to 30 s, with jitter over its upper half', async (t) => {
  t.equal(backoffMs(2_000, 0, 0), 1_000);
  t.equal(backoffMs(2_000, 0, 1), 2_000);
  t.equal(backoffMs(2_000, 2, 1), 8_000);
  t.equal(backoffMs(2_000, 1_000, 1), 30_000);
});
