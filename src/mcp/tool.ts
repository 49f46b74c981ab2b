import { createHash } from 'node:crypto';
import { setImmediate as nextTick } from 'node:timers/promises';
import type { Tool, ToolContext, ToolResult } from '../agent/index.ts';
import { messageOf, plainText } from '../lib/index.ts';
import { defaults } from '../protocol/index.ts';
import type { CallOptions, Connection } from './connection.ts';
import { failureOf } from './failure.ts';
import type { Tool as ServerTool } from './library.ts';
import { toToolResult } from './result.ts';

/** The server of a tool, as the tool uses it. */
export interface ToolHost {
  readonly serverName: string;
  /** Server in lasting approvals; default: its name. */
  readonly scope?: string | undefined;
  /** By the user's word nothing of it needs approval. */
  readonly isTrusted: boolean;
  readonly toolTimeoutSec: number;
  /** The connection, when the server is ready. */
  readonly connection: () => Connection | undefined;
  /** Resolves when the server is ready, or can no longer become ready. */
  readonly settled: () => Promise<void>;
  /** E.g. `restarting`, with the last error. */
  readonly stateText: () => string;
  /** Name of the server, when the user can log in to it. */
  readonly login?: string | undefined;
  /** `traceparent` of a call (W3C Trace Context), while calls are traced. */
  readonly traceparent?: ((call: ToolContext) => string) | undefined;
  readonly clean: (text: string) => string;
  readonly cleanResult: (text: string) => string;
}

const failed = (problem: string): ToolResult => ({ text: `Error: ${problem}`, isError: true });

/** One tool of an MCP server as the agent runs it. */
export function createTool(name: string, tool: ServerTool, host: ToolHost): Tool {
  const { serverName } = host;
  // Any server may claim it, and the tool then runs in plans, too: only the user's word makes it true.
  const isReadOnly = host.isTrusted && tool.annotations?.readOnlyHint === true;
  const scopeKey = `mcp:${host.scope ?? serverName}:${tool.name}:${fingerprintOf(tool)}`;
  return {
    name,
    source: 'mcp',
    description: descriptionOf(tool, serverName),
    inputSchema: tool.inputSchema,
    isReadOnly,
    parse: parseArguments,
    async approvalFor(args) {
      if (host.isTrusted) return undefined;
      const given = JSON.stringify(args);
      return {
        kind: 'remoteResource',
        operation: 'call',
        target: `${serverName}/${tool.name}${given === '{}' ? '' : ` ${given}`}`,
        scopeKey,
        covers: `every call of ${tool.name} of the MCP server ${serverName}, with any arguments`,
      };
    },
    run: (args, context) => run(tool, args as Arguments, context, host),
  };
}

/** Differs when the server describes the tool differently: an approval holds for the tool that the user knew. */
function fingerprintOf({ title, description, inputSchema, annotations }: ServerTool): string {
  const parts = JSON.stringify([title, description, inputSchema, annotations]);
  return createHash('sha256').update(parts).digest('base64url').slice(0, 16);
}

function descriptionOf(tool: ServerTool, serverName: string): string {
  const text = plainText(tool.description ?? tool.title ?? tool.annotations?.title ?? '').trim();
  if (text === '') return `The tool ${tool.name} of the MCP server ${serverName}.`;
  return text.length <= defaults.mcp.descriptionChars ? text : `${text.slice(0, defaults.mcp.descriptionChars - 1)}…`;
}

type Arguments = Readonly<Record<string, unknown>>;

/** The server knows its schema best, and reports faults; only the outer shape is checked here. */
function parseArguments(
  args: unknown,
): { readonly ok: true; readonly args: Arguments } | { readonly ok: false; readonly error: string } {
  if (args === undefined || args === null) return { ok: true, args: {} };
  if (typeof args !== 'object' || Array.isArray(args)) {
    return { ok: false, error: 'The arguments must be a JSON object.' };
  }
  return { ok: true, args: args as Arguments };
}

async function run(tool: ServerTool, args: Arguments, context: ToolContext, host: ToolHost): Promise<ToolResult> {
  const { signal, onOutput, remote } = context;
  signal.throwIfAborted();
  let task = remote?.handle;
  const options = {
    signal,
    meta: host.traceparent ? { traceparent: host.traceparent(context) } : undefined,
    elicit: async (form, withdrawn) => (await context.elicit?.(form, withdrawn)) ?? { action: 'cancel' },
    onTask(handle) {
      task = handle;
      remote?.save(handle);
    },
    isLeft: remote?.isLeft,
    limit: { leftMs: host.toolTimeoutSec * 1_000 },
    onProgress: ({ progress, total, message }) => {
      onOutput(`${progress}${total === undefined ? '' : `/${total}`}${message ? ` ${plainText(message)}` : ''}\n`);
    },
  } satisfies CallOptions;
  for (let connection = host.connection(); ; ) {
    if (!connection) return task === undefined ? notReady(host) : lost(tool, host, host.stateText());
    try {
      const result = await connection.call(tool, args, { ...options, task });
      signal.throwIfAborted();
      return toToolResult(result, host.cleanResult);
    } catch (error) {
      signal.throwIfAborted();
      if (error instanceof Error && error.name === 'LostTaskError') return lost(tool, host, error.message);
      // A task outlives the connection of its call.
      const next = task === undefined ? undefined : await connectionAfter(connection, host, signal);
      if (!next) return failed(host.clean(problemOf(error, tool, host)));
      connection = next;
    }
  }
}

/** Connection that replaces a broken one; undefined if it is not broken, or the server does not return. */
async function connectionAfter(
  broken: Connection,
  host: ToolHost,
  signal: AbortSignal,
): Promise<Connection | undefined> {
  // The request may fail before the end of its connection is detected.
  await nextTick();
  if (host.connection() === broken) return undefined;
  const aborted = new Promise<never>((_, reject) =>
    signal.addEventListener('abort', () => reject(signal.reason), { once: true }),
  );
  await Promise.race([host.settled(), aborted]);
  return host.connection();
}

const notReady = (host: ToolHost): ToolResult =>
  failed(
    `the MCP server ${host.serverName} is not ready: ${host.stateText()} Try again later, or continue without this server.`,
  );

/** Result of a call whose task is lost. */
const lost = ({ name }: ServerTool, { serverName, clean }: ToolHost, reason: string): ToolResult => ({
  text: clean(
    `Error: the task of ${name} at the MCP server ${serverName} is lost (${plainText(reason.slice(0, defaults.mcp.errorChars))}). Whether the call had an effect is unknown: check before you repeat it.`,
  ),
  isError: true,
  isUnknown: true,
});

function problemOf(error: unknown, tool: ServerTool, { serverName, toolTimeoutSec, login }: ToolHost): string {
  const subject = `${tool.name} of the MCP server ${serverName}`;
  const { code } = error as { readonly code?: unknown };
  if (code === 'REQUEST_TIMEOUT') {
    return `${subject} did not answer within ${toolTimeoutSec} s and was cancelled. It may have had an effect all the same. Ask for less at once, or raise toolTimeoutSec.`;
  }
  if (code === 'CONNECTION_CLOSED' || code === 'NOT_CONNECTED') {
    return `the MCP server ${serverName} went away during the call and is being restarted. Whether the call had an effect is unknown: check before you repeat it.`;
  }
  const message = messageOf(error).slice(0, defaults.mcp.errorChars);
  // A JSON-RPC error of the server is meant for the caller.
  if (typeof code === 'number') return `${subject} answered with error ${code}: ${plainText(message)}`;
  return `${subject} failed: ${plainText(failureOf(error, login).message.slice(0, defaults.mcp.errorChars))}`;
}
