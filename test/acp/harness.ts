/** Editors by the protocol's own client, against the agent on streams or in a process; behind it a real agent server. */
import { mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough, Readable, Transform, Writable } from 'node:stream';
import {
  type ClientCapabilities,
  type ClientConnection,
  client,
  type McpServer,
  ndJsonStream,
  type RequestPermissionRequest,
  type RequestPermissionResponse,
  type SessionNotification,
} from '@agentclientprotocol/sdk';
import { throughHub } from '../../src/acp/connect.ts';
import { runAcp } from '../../src/acp/index.ts';
import type { ModelProvider } from '../../src/agent/index.ts';
import { type AppServer, startAppServer } from '../../src/appserver/index.ts';
import { AppServerClient } from '../../src/client/index.ts';
import { createLogger } from '../../src/log/index.ts';
import { SchemaCheck, type Side } from '../acp-schema.ts';
import { enginesOfServer } from '../appserver/shared-engines.ts';
import { configureWorkspace } from '../workspace-config.ts';

interface Teardown {
  teardown(work: () => unknown): void;
}

export interface Surroundings {
  readonly home: string;
  readonly workspace: string;
  readonly server: AppServer;
}

/** A workspace with an agent server that answers by `provider`. */
export async function surroundings(t: Teardown, provider: ModelProvider, config: unknown = {}): Promise<Surroundings> {
  const directory = realpathSync(mkdtempSync(join(tmpdir(), 'oratorio-acp-')));
  t.teardown(() => rmSync(directory, { recursive: true, force: true, maxRetries: 5 }));
  const home = join(directory, '.oratorio');
  const workspace = join(directory, 'site');
  configureWorkspace({ home, workspace }, config);
  const server = await startAppServer({
    workspacePath: workspace,
    env: { ORATORIO_HOME: home },
    logger: createLogger({ name: 'test', level: 'silent' }),
    provider: async () => provider,
    checkpointEngines: enginesOfServer(),
  });
  t.teardown(() => server.close());
  return { home, workspace, server };
}

export type Permit = (
  request: RequestPermissionRequest,
) => Promise<RequestPermissionResponse> | RequestPermissionResponse;

export const choose = (optionId: string): RequestPermissionResponse => ({ outcome: { outcome: 'selected', optionId } });

export interface Editor {
  readonly agent: ClientConnection['agent'];
  readonly connection: ClientConnection;
  readonly updates: SessionNotification[];
  readonly asked: RequestPermissionRequest[];
  /** The updates of one kind. */
  of<K extends SessionNotification['update']['sessionUpdate']>(
    kind: K,
  ): Extract<SessionNotification['update'], { sessionUpdate: K }>[];
  /** All text of the agent's messages. */
  said(): string;
}

/** An editor on two byte streams. */
export function editorOn(
  toAgent: WritableStream<Uint8Array>,
  fromAgent: ReadableStream<Uint8Array>,
  permit: Permit = () => choose('decline'),
): Editor {
  const updates: SessionNotification[] = [];
  const asked: RequestPermissionRequest[] = [];
  const connection = client({ name: 'test editor' })
    .onNotification('session/update', ({ params }) => void updates.push(params))
    .onRequest('session/request_permission', ({ params }) => {
      asked.push(params);
      return permit(params);
    })
    .connect(ndJsonStream(toAgent, fromAgent));
  const of = <K extends SessionNotification['update']['sessionUpdate']>(kind: K) =>
    updates
      .map(({ update }) => update)
      .filter((update): update is Extract<typeof update, { sessionUpdate: K }> => update.sessionUpdate === kind);
  return {
    agent: connection.agent,
    connection,
    updates,
    asked,
    of,
    said: () =>
      of('agent_message_chunk')
        .map(({ content }) => (content.type === 'text' ? content.text : ''))
        .join(''),
  };
}

export interface StartedAgent {
  /** Resolves when the agent's side has ended. */
  readonly ended: Promise<void>;
  /** Bytes from the editor, and bytes from the agent. */
  readonly input: Transform;
  readonly output: Transform;
  readonly log: string[];
  /** Valid messages of both sides, see `SchemaCheck`. */
  readonly seen: ReadonlySet<string>;
}

/** A stream to a side. A message of ours that breaks the official schema fails the test at once. */
const checked = (check: SchemaCheck, to: Side): Transform =>
  new Transform({
    transform(chunk: Buffer, _, done) {
      check.write(to, chunk.toString('utf8'));
      const [problem] = check.problems.client;
      if (problem !== undefined) throw new Error(`the official schema refuses a message of ours: ${problem}`);
      done(null, chunk);
    },
  });

export interface Attached extends Editor, StartedAgent {}

export interface AttachOptions {
  readonly permit?: Permit;
  readonly isLoggedIn?: boolean;
  readonly capabilities?: ClientCapabilities;
  readonly mcpServers?: McpServer[];
  /** Called with each connection that is made to the agent server. */
  readonly onConnect?: (client: AppServerClient) => void;
}

/** An agent in this process, on two streams. */
export function startAgent(t: Teardown, { home, server }: Surroundings, options: AttachOptions = {}): StartedAgent {
  const check = new SchemaCheck();
  const input = checked(check, 'agent');
  const output = checked(check, 'client');
  const log: string[] = [];
  const ended = runAcp({
    input,
    output,
    home,
    isLoggedIn: async () => options.isLoggedIn ?? true,
    log: createLogger({ name: 'acp', pretty: false, stream: { write: (line) => log.push(line) } }),
    connect: async ({ onRequest, signal }) => {
      const connected = await AppServerClient.connect(server.webSocketUrl, { onRequest, signal });
      options.onConnect?.(connected);
      return { client: connected, approvalPolicy: 'default' };
    },
  });
  t.teardown(async () => {
    input.end();
    await ended;
  });
  return { ended, input, output, log, seen: check.seen };
}

/** An editor attached to an agent in this process. It has not said anything yet. */
export function attach(t: Teardown, where: Surroundings, options: AttachOptions = {}): Attached {
  const started = startAgent(t, where, options);
  const fromAgent = Readable.toWeb(started.output) as ReadableStream<Uint8Array>;
  return { ...editorOn(Writable.toWeb(started.input), fromAgent, options.permit), ...started };
}

export const introduce = (editor: Editor, clientCapabilities: ClientCapabilities = {}) =>
  editor.agent.request('initialize', { protocolVersion: 1, clientCapabilities });

/** An editor that has begun a session in the workspace. */
export async function inSession(t: Teardown, where: Surroundings, options: AttachOptions = {}) {
  const editor = attach(t, where, options);
  await introduce(editor, options.capabilities);
  const { mcpServers = [] } = options;
  const { sessionId } = await editor.agent.request('session/new', { cwd: where.workspace, mcpServers });
  const prompt = (text: string) =>
    editor.agent.request('session/prompt', { sessionId, prompt: [{ type: 'text', text }] });
  return { ...editor, sessionId, prompt };
}

/** An editor behind the Hub of a home. */
export async function editorIn(t: Teardown, home: string, permit?: Permit) {
  const [input, output] = [new PassThrough(), new PassThrough()];
  const log = createLogger({ name: 'acp', level: 'silent' });
  const connect = throughHub({ home, env: {}, autoStart: false, onWarning: () => undefined });
  const ended = runAcp({ input, output, home, log, connect, isLoggedIn: async () => true });
  const leave = () => {
    input.end();
    return ended;
  };
  t.teardown(leave);
  const editor = editorOn(Writable.toWeb(input), Readable.toWeb(output) as ReadableStream<Uint8Array>, permit);
  await introduce(editor);
  return { ...editor, leave };
}
