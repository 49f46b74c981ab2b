import { markerVariable } from '../supervise/index.ts';
import { type AgentProcessOptions, agentProcess } from './configure.ts';
import { Connection } from './connection.ts';
import { clientCapabilities, unknownMethod } from './sessions.ts';

export interface AgentLoginOptions extends AgentProcessOptions {
  /** Working directory of the agent. */
  readonly cwd: string;
  /** Ends the agent and the log-in. */
  readonly signal: AbortSignal;
  /** Id of the login method; undefined: the agent's first one. */
  readonly method: string | undefined;
  readonly onBug: (error: unknown) => void;
}

/** Result of a login: the agent has logged the user in, or the user has to run a program in the terminal. */
export type AgentLogin =
  | { readonly kind: 'done'; readonly method: string }
  | { readonly kind: 'terminal'; readonly command: readonly string[]; readonly env: Readonly<Record<string, string>> };

/** A log-in that failed. The message is a sentence for the user. */
export class AgentLoginError extends Error {
  override readonly name = 'AgentLoginError';
}

/**
 * Starts an agent outside any workspace and asks it to log its user in.
 *
 * @throws AgentLoginError when the agent cannot be started or has no such login method; JsonRpcError of the agent; the reason of `signal`
 */
export async function logInToAgent({ cwd, signal, method, onBug, ...agent }: AgentLoginOptions): Promise<AgentLogin> {
  const { command, env } = agentProcess(agent);
  const ready = Promise.withResolvers<void>();
  const swept = Promise.withResolvers<void>();
  // The start may fail before anything awaits this promise.
  ready.promise.catch(() => undefined);
  const connection = new Connection({
    ...{ command, cwd, env, clientCapabilities, onBug },
    ...{ incarnation: 1, worker: undefined, record: undefined, exported: undefined },
    parentMarker: agent.env[markerVariable],
    onRequest: (name) => Promise.reject(unknownMethod(name)),
    onNotification: () => undefined,
    report: (event) => {
      if (event.type === 'HANDSHAKE.DONE') ready.resolve();
      if (event.type === 'HANDSHAKE.FAILED') ready.reject(new AgentLoginError(event.error));
      if (event.type === 'PROCESS.EXITED') ready.reject(new AgentLoginError(event.error));
      if (event.type === 'PROCESS.SWEPT') swept.resolve();
    },
  });
  const stop = () => ready.reject(signal.reason);
  signal.addEventListener('abort', stop, { once: true });
  try {
    await ready.promise;
    const methods = (connection.info?.authMethods ?? []).filter(({ id }) => id !== undefined);
    const chosen = method === undefined ? methods[0] : methods.find(({ id }) => id === method);
    if (chosen?.id === undefined) throw new AgentLoginError(missing(method, methods));
    if (chosen.type === 'terminal') {
      return { kind: 'terminal', command: [...command, ...(chosen.args ?? [])], env: { ...env, ...chosen.env } };
    }
    await connection.peer.request('authenticate', { methodId: chosen.id }, { signal });
    return { kind: 'done', method: chosen.name ?? chosen.id };
  } finally {
    signal.removeEventListener('abort', stop);
    connection.kill();
    await swept.promise;
  }
}

function missing(wanted: string | undefined, methods: readonly { readonly id?: string | undefined }[]): string {
  if (methods.length === 0) return 'It offers no login method: see its documentation.';
  return `It has no login method ${wanted ?? ''}. Choose one of: ${methods.map(({ id }) => id).join(', ')}.`;
}
