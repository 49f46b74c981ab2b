/** Commands of the Model Context Protocol: this product as a server, and log-ins at servers. */
import type { CommandSpec } from './command.ts';
import { inWorkspace, json, noStart } from './shared-options.ts';

const server = { name: 'server', completes: 'nothing' } as const;

export const mcpCommands: readonly CommandSpec[] = [
  {
    name: 'mcp',
    describe: [
      'Serve the workspaces as MCP tools for another agent.',
      'The agent starts it: protocol on standard input and output. Its rights are those of a scoped token; it never decides about a request of the workspace that it runs in.',
    ],
    options: [
      { name: 'allow', value: 'scopes', describe: 'Set rights; default: list,read,start,prompt; also approve' },
      { name: 'name', value: 'name', describe: 'Name this client in the record of decisions' },
      noStart,
    ],
    examples: ['mcp', 'mcp --allow list,read,prompt,approve --name lead'],
    servesForeground: true,
    load: () => import('./commands/mcp.ts'),
  },
  {
    name: 'mcp login',
    describe: [
      'Connect an MCP server by a log-in in the browser.',
      'For a server on the network that wants OAuth. Prints the address, opens it at a terminal, and waits until the browser comes back. A running agent server uses the token at once.',
    ],
    argument: server,
    options: [
      { name: 'open', describe: 'Open the browser without a terminal, too' },
      { name: 'no-open', describe: 'Print the address and open nothing' },
      inWorkspace,
      json,
    ],
    examples: ['mcp login tracker', 'mcp login tracker --no-open'],
    load: async () => ({ run: (await import('./commands/mcp-login.ts')).login }),
  },
  {
    name: 'mcp logout',
    describe: [
      'Remove the log-in at an MCP server.',
      'Asks the authorization server to end the token, where it can, and removes the token.',
    ],
    argument: server,
    options: [inWorkspace, json],
    examples: ['mcp logout tracker'],
    load: async () => ({ run: (await import('./commands/mcp-login.ts')).logout }),
  },
  {
    name: 'mcp status',
    describe: [
      'Show the log-ins at MCP servers.',
      'Of the servers on the network that the workspace and your settings name, or of one. Asks no server.',
    ],
    argument: server,
    options: [inWorkspace, json],
    examples: ['mcp status', 'mcp status tracker --json'],
    load: async () => ({ run: (await import('./commands/mcp-login.ts')).status }),
  },
];
