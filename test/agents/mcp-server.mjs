/** An MCP server without tools that ignores the end of its input: what an agent leaves of it must be ended. */
import { createInterface } from 'node:readline';

setInterval(() => {}, 60_000);
createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method, params } = JSON.parse(line);
  if (id === undefined) return;
  const results = {
    initialize: {
      protocolVersion: params?.protocolVersion ?? '2025-06-18',
      capabilities: { tools: {} },
      serverInfo: { name: 'left-behind', version: '1.0.0' },
    },
    'tools/list': { tools: [] },
    ping: {},
  };
  const result = results[method];
  const answer = result ? { result } : { error: { code: -32_601, message: `no method ${method}` } };
  process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', id, ...answer })}\n`);
});
