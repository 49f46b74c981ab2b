import { randomUUID } from 'node:crypto';
import type { AgentContext, PermissionOption, SessionUpdate, ToolCallContent } from '@agentclientprotocol/sdk';
import { RequestError } from '@agentclientprotocol/sdk';
import * as v from 'valibot';
import { AppServerConnectionError, JsonRpcError } from '../client/index.ts';
import {
  changedFiles,
  EditorServersError,
  editorServerAnswer,
  filesOfServer,
  loadsCode,
  storeEditorServerAnswer,
} from '../config/index.ts';
import { count, messageOf, plural, shellWord, visible } from '../lib/index.ts';
import type { Logger } from '../log/index.ts';
import { defaults, type McpServerSettings, McpServerStatus, rpcErrors } from '../protocol/index.ts';
import type { BroughtServers } from './editor-servers.ts';
import type { Link } from './servers.ts';

export interface SessionServersOptions {
  readonly sessionId: string;
  readonly servers: BroughtServers;
  /** Name that the editor reports. */
  readonly editor: string;
  readonly client: AgentContext;
  /** User home, absolute. */
  readonly home: string;
  readonly workspacePath: string;
  readonly emit: (update: SessionUpdate) => void;
  readonly log: Logger;
}

const options: PermissionOption[] = [
  { optionId: 'accept', name: 'Start for this session', kind: 'allow_once' },
  { optionId: 'acceptAlways', name: 'Always start in this workspace', kind: 'allow_always' },
  { optionId: 'decline', name: 'Do not start', kind: 'reject_once' },
  { optionId: 'declineAlways', name: 'Never start in this workspace', kind: 'reject_always' },
];

const StatusList = v.looseObject({
  data: v.array(v.pick(McpServerStatus, ['name', 'startupState', 'toolCount', 'lastError'])),
  configured: v.array(v.string()),
});
type Status = v.InferOutput<typeof StatusList>['data'][number];

/** MCP servers of the editor in one session. Each starts once the user allows it, and ends with the session. */
export class SessionServers {
  readonly #options: SessionServersOptions;
  readonly #withdrawal = new AbortController();
  readonly #starts = new WeakMap<Link, Promise<void>>();
  /** Tool calls that show the questions, by server. */
  readonly #shown = new Map<string, string>();
  #allowed: Promise<Record<string, McpServerSettings>> | undefined;

  constructor(options: SessionServersOptions) {
    this.#options = options;
  }

  /** Asks the user, once, then starts the allowed servers at this agent server, once. Never rejects. */
  startAt(link: Link): Promise<void> {
    const known = this.#starts.get(link);
    if (known) return known;
    const start = this.#start(link);
    this.#starts.set(link, start);
    return start;
  }

  /** Withdraws open questions. The agent server ends the servers when the session leaves its thread. */
  close(): void {
    this.#withdrawal.abort();
  }

  async #start({ client }: Link): Promise<void> {
    this.#allowed ??= this.#ask();
    const servers = await this.#allowed;
    if (Object.keys(servers).length === 0 || this.#withdrawal.signal.aborted) return;
    const { sessionId: threadId, log } = this.#options;
    try {
      const answer = await client.request(
        'thread/mcp/set',
        { threadId, servers },
        { timeoutMs: defaults.acp.serverStartMs },
      );
      const { data, configured } = v.parse(StatusList, answer);
      for (const status of data) this.#report(status);
      for (const [name, toolCallId] of this.#shown) {
        if (data.some((status) => status.name === name)) continue;
        const isConfigured = configured.includes(name);
        const words = isConfigured ? `The configured server ${name} is used instead.` : 'Handed on to the agent.';
        this.#end(toolCallId, 'completed', words);
      }
    } catch (error) {
      // The next connection starts them.
      if (error instanceof AppServerConnectionError) return;
      const isOld = error instanceof JsonRpcError && error.code === rpcErrors.methodNotFound.code;
      const problem = isOld ? 'The agent server is older: run oratorio restart.' : messageOf(error);
      log.warn(`MCP servers of the editor were not started: ${problem}`);
      for (const toolCallId of this.#shown.values()) this.#end(toolCallId, 'failed', `Not started. ${problem}`);
    } finally {
      this.#shown.clear();
    }
  }

  /** Asks about the servers one after the other. */
  async #ask(): Promise<Record<string, McpServerSettings>> {
    const allowed: Record<string, McpServerSettings> = {};
    for (const [name, settings] of this.#options.servers) {
      if (await this.#mayStart(name, settings)) allowed[name] = settings;
    }
    return allowed;
  }

  async #mayStart(name: string, settings: McpServerSettings): Promise<boolean> {
    const { home, editor, workspacePath: workspace, log } = this.#options;
    const server = { editor, workspace, settings };
    const stored = editorServerAnswer(home, server);
    if (stored !== undefined) return stored === 'always';
    const files = filesOfServer(settings, workspace);
    const optionId = await this.#choice(name, settings);
    const isAllowed = optionId === 'accept' || optionId === 'acceptAlways';
    const [changed] = changedFiles(files, filesOfServer(settings, workspace));
    if (isAllowed && changed !== undefined) {
      this.#endOf(
        name,
        `Not started: ${visible(changed)} changed while the question was open. Review it, then reopen the session.`,
      );
      return false;
    }
    try {
      if (optionId === 'acceptAlways') storeEditorServerAnswer(home, server, 'always');
      if (optionId === 'declineAlways') storeEditorServerAnswer(home, server, 'never');
    } catch (error) {
      if (!(error instanceof EditorServersError)) throw error;
      log.warn(`The answer about the MCP server ${name} is not remembered: ${error.message}`);
    }
    if (!isAllowed) this.#endOf(name, 'Not started.');
    return isAllowed;
  }

  /** The chosen option; undefined: the question was cancelled, or the editor cannot ask. */
  async #choice(name: string, settings: McpServerSettings): Promise<string | undefined> {
    const { sessionId, client, emit, editor, workspacePath } = this.#options;
    const toolCallId = `mcp-server-${randomUUID()}`;
    const title = `Start the MCP server ${name}`;
    const content = [textContent(questionOf(editor, settings, workspacePath))];
    this.#shown.set(name, toolCallId);
    emit({ sessionUpdate: 'tool_call', toolCallId, title, kind: 'execute', status: 'pending', content });
    try {
      const { outcome } = await client.request(
        'session/request_permission',
        { sessionId, toolCall: { toolCallId, title, kind: 'execute', status: 'pending', content }, options },
        { cancellationSignal: this.#withdrawal.signal, stopWaitingOnCancel: true },
      );
      return outcome.outcome === 'selected' ? outcome.optionId : undefined;
    } catch (error) {
      if (error instanceof RequestError)
        this.#options.log.warn(`The editor cannot ask about MCP servers: ${error.message}`);
      return undefined;
    }
  }

  #report({ name, startupState, toolCount, lastError }: Status): void {
    const toolCallId = this.#shown.get(name);
    const isReady = startupState === 'ready';
    const problem = `The MCP server ${name} is ${startupState}${lastError ? `: ${lastError}` : ''}.`;
    if (!isReady) this.#options.log.warn(problem);
    if (toolCallId === undefined) return;
    if (isReady) this.#end(toolCallId, 'completed', `Ready with ${count(toolCount, 'tool')}.`);
    else this.#end(toolCallId, 'failed', problem);
  }

  #endOf(name: string, words: string): void {
    const toolCallId = this.#shown.get(name);
    this.#shown.delete(name);
    if (toolCallId !== undefined) this.#end(toolCallId, 'failed', words);
  }

  #end(toolCallId: string, status: 'completed' | 'failed', words: string): void {
    if (this.#withdrawal.signal.aborted) return;
    this.#options.emit({
      sessionUpdate: 'tool_call_update',
      toolCallId,
      status,
      content: [textContent(visible(words))],
    });
  }
}

const textContent = (text: string): ToolCallContent => ({ type: 'content', content: { type: 'text', text } });

function questionOf(editor: string, settings: McpServerSettings, workspacePath: string): string {
  const lines = [
    `${editor} names this MCP server. It runs with your rights, outside of the sandbox, until the session ends.`,
    ...(settings.transport === 'stdio' ? commandLines(settings, workspacePath) : addressLines(settings)),
  ];
  return lines.map((line) => visible(line, { multiline: false, strict: true })).join('\n');
}

function commandLines({ command, args, env }: McpServerSettings & { transport: 'stdio' }, directory: string): string[] {
  const variables = Object.entries(env).map(([name, value]) =>
    loadsCode.test(name) ? `${name}=${shellWord(value)}` : name,
  );
  return [
    `│ ${[command, ...args].map(shellWord).join(' ')}`,
    `directory: ${directory}`,
    ...(variables.length === 0 ? [] : [`variables: ${variables.join(', ')}`]),
  ];
}

function addressLines({ url, httpHeaders }: McpServerSettings & { transport: 'streamableHttp' }): string[] {
  const headers = Object.keys(httpHeaders);
  const { origin, pathname, search } = new URL(url);
  return [
    `│ ${origin}${pathname}${search === '' ? '' : ' (with a query)'}`,
    ...(headers.length === 0 ? [] : [`${plural(headers.length, 'header')}: ${headers.join(', ')}`]),
  ];
}
