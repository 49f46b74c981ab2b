/** Commands for MCP: this product as a server, and log-ins at servers. */
import type { CommandSpec } from './command.ts';
import { inWorkspace, json, noStart } from './shared-options.ts';

const server = { name: 'server', completes: 'nothing' } as const;

export const mcpCommands: readonly CommandSpec[] = [
  {
    name: 'mcp',
    describe: [
      'Serve the workspaces as MCP tools for another agent.',
      'The agent starts it and speaks the protocol on standard input and output. It has the rights of a scoped token, and never decides a request of the workspace that it runs in.',
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
      'Log in to an MCP server in the browser.',
      'For an HTTP server that requires OAuth. Prints the address, opens it in the browser if there is a terminal, and waits for the log-in. A running agent server uses the token at once.',
    ],
    argument: server,
    options: [
      { name: 'open', describe: 'Open the browser even without a terminal' },
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
      'Log out of an MCP server.',
      'Asks the authorization server to revoke the token, if it supports that, and deletes the token.',
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
      'Lists all HTTP servers of the workspace and your settings, or one of them. Contacts no server.',
    ],
    argument: server,
    options: [inWorkspace, json],
    examples: ['mcp status', 'mcp status tracker --json'],
    load: async () => ({ run: (await import('./commands/mcp-login.ts')).status }),
  },
];
