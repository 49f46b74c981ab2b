/** kill -9 during the call of a client's tool: the client connects again, and the turn goes on with its answer. */
import t from 'tap';
import { answered, startMockUpstream } from '../fixtures/upstream/mock-upstream.ts';
import { Client, type Message, makeWorkspace, serving, spawnServer, words } from './harness.ts';

const dynamicTools = [{ name: 'weather', description: 'Tells the weather.', inputSchema: { type: 'object' } }];
const isCall = ({ method }: Message) => method === 'item/tool/call';

t.test('a client that registers its tools again gets the open call with its id, and the turn ends', async (t) => {
  const upstream = await startMockUpstream(t, (request) =>
    request.body.messages.at(-1).role === 'user'
      ? answered(request, { toolCalls: [{ id: 'call_1', name: 'weather', arguments: { of: 'Ulm' } }] })
      : answered(request, { text: 'It is sunny.' }),
  );
  const { path, home } = makeWorkspace(t, { EndPoint: upstream.url, ApiKey: 'k', Model: 'm', UpstreamRetries: 0 });
  const start = async () => {
    const server = spawnServer(t, { path, home });
    return { server, client: await Client.ready(t, (await serving(server, path)).endpoints.appServerWebSocket) };
  };
  const first = await start();
  const { thread } = await first.client.call('thread/start', { dynamicTools });
  const threadId: string = thread.id;
  const { turn } = await first.client.call('turn/start', { threadId, input: words('How is the weather?') });
  const { params: asked } = await first.client.until(isCall, 'the call');
  first.server.child.kill('SIGKILL');
  await Promise.all([first.server.ended, first.client.closed]);

  const { client } = await start();
  const { thread: resumed } = await client.call('thread/resume', { threadId, dynamicTools });
  t.match(resumed.turns, [{ id: turn.id, status: 'running' }]);
  const again = await client.until(isCall, 'the repeated call');
  t.strictSame(again.params, asked);
  const contentItems = [{ type: 'text', text: 'sunny' }];
  client.send({ jsonrpc: '2.0', id: again.id, result: { success: true, contentItems } });
  const { params } = await client.notification('turn/completed');
  t.match(params.turn, { id: turn.id, status: 'completed', resumes: 1 });
  const results = params.turn.items.filter(({ type }: Message) => type === 'toolResult');
  t.match(results, [{ callId: 'call_1', outcome: 'completed', text: 'sunny' }]);
  t.equal(results.length, 1);
  t.equal(client.messages.filter(isCall).length, 1);
  t.equal(upstream.requests.length, 2, 'the request before the call, and the one after it');
});
