import { mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Test } from 'tap';
import type { Tool, ToolContext, ToolResult } from '../../../src/agent/tool.ts';

/** A canonical directory of its own outside the repository, removed afterwards. */
export function temporaryWorkspace(t: Test): string {
  const directory = realpathSync(mkdtempSync(join(tmpdir(), 'oratorio-tools-')));
  t.teardown(() => rmSync(directory, { recursive: true, force: true }));
  return directory;
}

/** Ends the tests with the error of unawaited work. */
export function onBug(error: unknown): never {
  throw error;
}

/** Context of a running tool; a test overrides the fields it needs. */
export function contextOf(overrides: Partial<ToolContext> = {}): ToolContext {
  return {
    workspacePath: '/nowhere',
    threadId: 'thread',
    turnId: 'turn',
    callId: 'call',
    signal: new AbortController().signal,
    onOutput: () => {},
    isApproved: () => true,
    spawnSubagent: async () => {
      throw new Error('nobody may spawn here');
    },
    ...overrides,
  };
}

/** Calls a tool as the runtime does: parses the arguments of the model first. */
export async function call(tool: Tool, args: unknown, overrides: Partial<ToolContext> = {}): Promise<ToolResult> {
  const parsed = tool.parse(args);
  if (!parsed.ok) throw new Error(parsed.error);
  return tool.run(parsed.args, contextOf(overrides));
}

/** Why a tool does not take `args`. */
export function problemOf(tool: Tool, args: unknown): string | undefined {
  const parsed = tool.parse(args);
  return parsed.ok ? undefined : parsed.error;
}

/** A server on the loopback interface that ends with the test; gives `host:port`. */
export async function serve(t: Test, answer: RequestListener, host = '127.0.0.1'): Promise<string> {
  const server = createServer(answer);
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(0, host, resolve);
  });
  t.teardown(() => {
    server.closeAllConnections();
    server.close();
  });
  return `${host}:${(server.address() as AddressInfo).port}`;
}
