/** The server of the Model Context Protocol by itself, on streams of the test. */
import { once } from 'node:events';
import { PassThrough } from 'node:stream';
import t, { type Test } from 'tap';
import { serveMcp } from '../../src/cli/mcp-server/server.ts';
import { toolsFor } from '../../src/cli/mcp-server/tools.ts';
import { delegationScopes } from '../../src/protocol/index.ts';
import type { McpTool } from '../../src/rpc/index.ts';

function serve(t: Test, tools: readonly McpTool[]) {
  const [input, output, ending] = [new PassThrough(), new PassThrough(), new AbortController()];
  const served = serveMcp({ tools }, { input, output, signal: ending.signal });
  t.teardown(() => ending.abort());
  let rest = '';
  const seen: { id?: unknown; result?: unknown; error?: { code: number } }[] = [];
  output.on('data', (chunk) => {
    const lines = (rest + String(chunk)).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) seen.push(JSON.parse(line));
  });
  return {
    served,
    input,
    seen,
    write: (message: unknown) => input.write(`${typeof message === 'string' ? message : JSON.stringify(message)}\n`),
    async until(count: number): Promise<void> {
      while (seen.length < count) await once(output, 'data');
    },
  };
}

const ask = (id: unknown, method: string, params?: unknown) => ({ jsonrpc: '2.0', id, method, params });
const none = { type: 'object' };

t.test('bad lines, unknown methods and a line that is too long are answered, and end nothing', async (t) => {
  const { write, until, seen, input, served } = serve(t, []);
  write('{');
  write('[]');
  write('');
  write(ask({}, 'ping'));
  write('x'.repeat(1_048_577));
  write(ask(1, 'nothing/here'));
  write(ask(2, 'tools/call', { name: 'toString' }));
  write(ask(3, 'initialize', { protocolVersion: '1999-01-01' }));
  write(ask('four', 'ping'));
  await until(8);
  const codeOf = (id: unknown) => seen.find((message) => message.id === id)?.error?.code;
  t.equal(seen.filter(({ id, error }) => id === null && error?.code === -32_600).length, 4);
  t.same([codeOf(1), codeOf(2), codeOf(3), codeOf('four')], [-32_601, -32_602, undefined, undefined]);
  const introduced = seen.find(({ id }) => id === 3);
  t.match(introduced?.result, { protocolVersion: '2025-11-25', capabilities: { tools: {} } });
  input.end();
  await served;
});

t.test('calls run side by side up to a limit, are cancelled, and are aborted at the end', async (t) => {
  const aborted: unknown[] = [];
  const wait: McpTool = {
    ...{ name: 'wait', description: '', isReadOnly: true, inputSchema: none },
    run: (args, signal) =>
      new Promise((_, reject) =>
        signal.addEventListener('abort', () => {
          aborted.push(args);
          reject(signal.reason);
        }),
      ),
  };
  const { write, until, seen, input, served } = serve(t, [wait]);
  for (let id = 0; id < 17; id += 1) write(ask(id, 'tools/call', { name: 'wait', arguments: { id } }));
  await until(1);
  t.match(seen, [{ id: 16, error: { code: -32_600 } }]);
  write({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 3 } });
  write(ask('after', 'ping'));
  await until(2);
  t.same(aborted, [{ id: 3 }]);
  input.end();
  await served;
  t.equal(aborted.length, 16);
  t.equal(seen.length, 2, 'a cancelled call has no answer');
});

t.test('a failure of a tool is a result that says why', async (t) => {
  const [list] = toolsFor(['list'], async () => {
    throw new Error('The Hub is shutting down.');
  });
  const { write, until, seen } = serve(t, list ? [list] : []);
  write(ask(1, 'tools/call', { name: 'list_workspaces' }));
  await until(1);
  t.match(seen, [{ result: { isError: true, content: [{ text: 'The Hub is shutting down.' }] } }]);
});

t.test('the tools are those of the scopes', async (t) => {
  const namesOf = (...scopes: (typeof delegationScopes)[number][]) =>
    toolsFor(scopes, async () => null).map(({ name }) => name);
  t.same(namesOf('list'), ['list_workspaces']);
  t.same(namesOf('approve'), ['list_requests', 'decide_request']);
  t.equal(namesOf(...delegationScopes).length, 6);
});
