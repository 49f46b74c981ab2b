/** kill -9 during a call that is a task of an MCP server: the next agent server waits for the same task. */
import t from 'tap';
import { ModernServer } from '../mcp/modern-server.ts';
import { Client, eventually, type Message, makeWorkspace, serving, spawnServer, words } from './harness.ts';

for (const end of ['SIGKILL', 'SIGTERM'] as const) {
  t.test(`a task of an MCP server is polled again after ${end}, and its result is used`, async (t) => {
    const mcp = await ModernServer.start(t, 0, true);
    const { path, home } = makeWorkspace(t, {
      McpServers: { small: { transport: 'streamableHttp', url: mcp.url, trusted: true } },
    });
    const first = spawnServer(t, { path, home });
    const client = await Client.ready(t, (await serving(first, path)).endpoints.appServerWebSocket);
    const isReady = async () => {
      const { data } = await client.call('mcp/status/list', {});
      return data[0]?.startupState === 'ready' || undefined;
    };
    await eventually(isReady, 'the MCP server is ready');
    const { thread } = await client.call('thread/start', {});
    const threadId: string = thread.id;
    const { turn } = await client.call('turn/start', { threadId, input: words('call mcp__small__research {}') });
    const seen = () => mcp.requests.filter(({ rpcMethod }) => rpcMethod === 'tasks/get').length;
    await eventually(() => seen() > 2 || undefined, 'the task is polled');
    first.child.kill(end);
    await Promise.all([first.ended, client.closed]);
    const before = seen();
    t.match([...mcp.brain.tasks.values()], [{ status: 'working' }], 'the task still runs');
    const second = spawnServer(t, { path, home });
    const next = await Client.ready(t, (await serving(second, path)).endpoints.appServerWebSocket);
    await eventually(() => seen() > before || undefined, 'the task is polled again');
    mcp.brain.setTasks({
      status: 'completed',
      result: { resultType: 'complete', content: [{ type: 'text', text: 'the tides' }] },
    });
    const last = await eventually(async () => {
      const read = await next.call('thread/read', { threadId, includeTurns: true });
      const [only] = read.thread.turns;
      return only.completedAt === undefined ? undefined : only;
    }, 'the end of the turn');
    t.match(last, { id: turn.id, status: 'completed' });
    const results = last.items.filter(({ type }: Message) => type === 'toolResult');
    t.match(results, [{ outcome: 'completed', text: 'the tides' }]);
    t.equal(results.length, 1);
    t.equal(mcp.brain.tasks.size, 1, 'the call is made exactly once');
  });
}
