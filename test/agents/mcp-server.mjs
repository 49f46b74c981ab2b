/** An MCP server with a tool that ignores the end of its input: processes that an agent leaves of it must be ended. */
import { writeFileSync } from 'node:fs';
import { createInterface } from 'node:readline';

setInterval(() => {}, 60_000);
createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method, params } = JSON.parse(line);
  if (id === undefined) return;
  // For the test: which process wants its tools.
  if (method === 'tools/list') writeFileSync(`${process.argv[2]}/tools-listed-${process.ppid}`, '');
  const results = {
    initialize: {
      protocolVersion: params?.protocolVersion ?? '2025-06-18',
      capabilities: { tools: {} },
      serverInfo: { name: 'left-behind', version: '1.0.0' },
    },
    'tools/list': {
      tools: [{ name: 'left_note', description: 'Leaves a note.', inputSchema: { type: 'object', properties: {} } }],
    },
    ping: {},
  };
  const result = results[method];
  const answer = result ? { result } : { error: { code: -32_601, message: `no method ${method}` } };
  process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', id, ...answer })}\n`);
});
