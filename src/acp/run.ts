import { Readable, Writable } from 'node:stream';
import { agent, ndJsonStream, RequestError } from '@agentclientprotocol/sdk';
import * as v from 'valibot';
import type { Logger } from '../log/index.ts';
import { defaults } from '../protocol/index.ts';
import { AcpAgent } from './acp-agent.ts';
import { refusalOf } from './errors.ts';
import type { Connect } from './servers.ts';

export interface AcpOptions {
  /** Where the editor writes; its end is the end. */
  readonly input: Readable;
  /** Where the editor reads: messages of the protocol and nothing else. */
  readonly output: Writable;
  readonly connect: Connect;
  /** Whether a model is connected. */
  readonly isLoggedIn: () => Promise<boolean>;
  /** User home, absolute. */
  readonly home: string;
  /** Must not write to `output`. */
  readonly log: Logger;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Serves one editor: ACP v1 (https://agentclientprotocol.com) as lines of JSON. Resolves when the editor has gone, or
 * `signal` has aborted, and everything that was done for it has ended.
 */
export async function runAcp({ input, output, connect, isLoggedIn, home, log, signal }: AcpOptions): Promise<void> {
  const acp = new AcpAgent({
    connect,
    isLoggedIn,
    home,
    log,
    onUnread: () => connection.close(new Error('The editor does not read its input.')),
  });
  /** Answers with the protocol's error for a failure. */
  const answered = async <T>(work: () => T | Promise<T>, sessionId?: string): Promise<T> => {
    try {
      return await work();
    } catch (error) {
      throw refusalOf(error, log, sessionId);
    }
  };
  const app = agent({ name: 'oratorio' })
    .onConnect(({ client }) => {
      acp.client = client;
    })
    .onRequest('initialize', ({ params }) => acp.initialize(params))
    .onRequest('authenticate', ({ params }) => answered(() => acp.authenticate(params)))
    .onRequest('logout', () => answered(() => acp.logout()))
    .onRequest('session/new', ({ params }) => answered(() => acp.newSession(params)))
    .onRequest('session/load', ({ params }) => answered(() => acp.openSession(params, true), params.sessionId))
    .onRequest('session/resume', ({ params }) => answered(() => acp.openSession(params, false), params.sessionId))
    .onRequest('session/fork', parseFork, ({ params }) => answered(() => acp.forkSession(params), params.sessionId))
    .onRequest('session/list', ({ params }) => answered(() => acp.listSessions(params)))
    .onRequest('session/prompt', ({ params, signal: cancelled }) =>
      answered(() => acp.prompt(params, cancelled), params.sessionId),
    )
    .onRequest('session/set_mode', ({ params }) =>
      answered(() => acp.setMode(params.sessionId, params.modeId), params.sessionId),
    )
    .onRequest('session/set_config_option', ({ params }) => answered(() => acp.setOption(params), params.sessionId))
    .onRequest('session/close', ({ params }) => answered(() => acp.closeSession(params.sessionId), params.sessionId))
    .onRequest('session/delete', ({ params }) => answered(() => acp.deleteSession(params.sessionId), params.sessionId))
    .onNotification('session/cancel', ({ params }) => answered(() => acp.cancel(params.sessionId), params.sessionId));
  const stream = ndJsonStream(
    Writable.toWeb(output),
    // Node and the DOM type the same stream differently.
    Readable.toWeb(input) as ReadableStream<Uint8Array>,
    { maxMessageBytes: defaults.acp.messageBytes },
  );
  const connection = app.connect(stream);
  const onAbort = () => connection.close();
  signal?.addEventListener('abort', onAbort, { once: true });
  if (signal?.aborted) onAbort();
  await connection.closed;
  signal?.removeEventListener('abort', onAbort);
  await acp.close();
}

const Fork = v.object({
  sessionId: v.string(),
  cwd: v.string(),
  mcpServers: v.nullish(v.array(v.unknown())),
  additionalDirectories: v.nullish(v.array(v.string())),
});

/** Parameters of a request that only the unstable schema has. @throws RequestError -32602 */
function parseFork(params: unknown) {
  const parsed = v.safeParse(Fork, params);
  if (parsed.success) return parsed.output;
  throw RequestError.invalidParams(undefined, `${v.getDotPath(parsed.issues[0]) ?? 'params'} is invalid`);
}
