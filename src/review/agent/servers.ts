import { connectHub, type HubClient, HubRequestError } from '../../client/index.ts';
import { restrictionWarning } from '../../config/index.ts';
import { messageOf } from '../../lib/index.ts';
import type { Logger } from '../../log/index.ts';
import type { BackendSettings } from '../settings/index.ts';
import { AgentConnection, backendClient } from './connection.ts';
import { ReviewAgentError } from './errors.ts';
import type { AgentLimits } from './limits.ts';

export interface AgentServersOptions {
  readonly settings: () => BackendSettings;
  /** The user's home of Oratorio, where its Hub is found. */
  readonly home: string;
  readonly limits: AgentLimits;
  readonly logger: Logger;
}

/** The agent server of a workspace: its address, or the reason why it cannot be reached. */
export type AgentServerState =
  | { readonly state: 'reachable' }
  | { readonly state: 'unreachable'; readonly message: string };

/** Connections to agent servers: one per server, made when it is first needed and again after a loss. */
export class AgentServers {
  readonly #options: AgentServersOptions;
  readonly #connections = new Map<string, Promise<AgentConnection>>();
  #isClosed = false;

  constructor(options: AgentServersOptions) {
    this.#options = options;
  }

  /** @throws ReviewAgentError agentUnavailable; the reason of `signal` */
  async connect(workspacePath: string, signal?: AbortSignal): Promise<AgentConnection> {
    const key = this.#configuredUrl() ?? workspacePath;
    const known = this.#connections.get(key);
    const opening = known ?? this.#open(workspacePath);
    if (!known) this.#keep(key, opening);
    return signal ? abortable(opening, signal) : opening;
  }

  /** Whether the agent server can be reached; starts nothing. */
  async status(workspacePath: string): Promise<AgentServerState> {
    try {
      if (this.#configuredUrl() !== undefined) await this.connect(workspacePath);
      else if (!this.#connections.has(workspacePath)) await this.#inspect(workspacePath);
      return { state: 'reachable' };
    } catch (error) {
      return { state: 'unreachable', message: (error as Error).message };
    }
  }

  /**
   * Address of the page of the agent server of a workspace; undefined when it has none, or does not run. Starts nothing.
   * The address has no token: a user who may see reviews may not therefore see, and delete, everything else of that workspace.
   */
  async dashboard(workspacePath: string): Promise<string | undefined> {
    if (this.#configuredUrl() !== undefined) {
      return (await this.connect(workspacePath).catch(notThere))?.dashboardUrl;
    }
    return (await this.#inspect(workspacePath).catch(notThere))?.['dashboard'];
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    const open = [...this.#connections.values()];
    this.#connections.clear();
    await Promise.all(open.map((each) => each.then((connection) => connection.close()).catch(() => undefined)));
  }

  #keep(key: string, opening: Promise<AgentConnection>): void {
    this.#connections.set(key, opening);
    const forget = () => {
      if (this.#connections.get(key) === opening) this.#connections.delete(key);
    };
    opening.then((connection) => connection.closed.then(forget), forget);
  }

  /** Configured address of the agent server; undefined: the Hub knows it. Never show the address: it holds a token. */
  #configuredUrl(): string | undefined {
    const { AppServerUrl, AppServerToken } = this.#options.settings().AgentServer;
    if (AppServerUrl === '' || !URL.canParse(AppServerUrl)) return AppServerUrl === '' ? undefined : AppServerUrl;
    const url = new URL(AppServerUrl);
    if (AppServerToken !== '') url.searchParams.set('token', AppServerToken);
    return url.href;
  }

  async #open(workspacePath: string): Promise<AgentConnection> {
    try {
      if (this.#isClosed) throw new Error('the backend is closing');
      const url = this.#configuredUrl() ?? (await this.#ensure(workspacePath));
      const timeoutMs = this.#options.settings().AgentServer.ConnectTimeoutSeconds * 1_000;
      return await AgentConnection.open(url, timeoutMs, this.#options.limits.requestMs);
    } catch (error) {
      throw unavailable(error);
    }
  }

  /** Finds the agent server of a workspace through the Hub, or starts it. */
  async #ensure(workspacePath: string): Promise<string> {
    const hub = await this.#connectedHub(true);
    const signal = AbortSignal.timeout(this.#options.limits.ensureMs);
    const record = await hub.ensure({ workspacePath, client: backendClient }, { signal });
    const url = record.endpoints['appServerWebSocket'];
    if (url === undefined) throw new Error(`it is ${record.state}${record.lastError ? `: ${record.lastError}` : ''}`);
    const { restrictedSettings } = record;
    if (restrictedSettings.length > 0) this.#options.logger.warn(restrictionWarning(workspacePath, restrictedSettings));
    return url;
  }

  /** @returns the address of each endpoint, by name @throws Error when the agent server does not run and would not wake */
  async #inspect(workspacePath: string): Promise<Readonly<Record<string, string>>> {
    const hub = await this.#connectedHub(false);
    const signal = AbortSignal.timeout(this.#options.limits.requestMs);
    const { state, phase, lastError, endpoints } = await hub.byWorkspace(workspacePath, { signal });
    // A review wakes it.
    if (state !== 'running' && phase !== 'asleep')
      throw new Error(`it is ${state}${lastError ? `: ${lastError}` : ''}`);
    return endpoints;
  }

  async #connectedHub(autoStart: boolean): Promise<HubClient> {
    if (!this.#options.settings().AgentServer.HubDiscoveryEnabled) {
      throw new Error('AgentServer.AppServerUrl is empty, and AgentServer.HubDiscoveryEnabled is false');
    }
    const { home } = this.#options;
    return (await connectHub({ home, autoStart })).hub;
  }
}

/** Reachability error as undefined: `status` reports the reason. */
const notThere = (): undefined => undefined;

const abortable = <T>(work: Promise<T>, signal: AbortSignal): Promise<T> =>
  new Promise((resolve, reject) => {
    signal.throwIfAborted();
    const onAbort = () => reject(signal.reason);
    signal.addEventListener('abort', onAbort, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', onAbort));
  });

function unavailable(error: unknown): ReviewAgentError {
  if (error instanceof ReviewAgentError) return error;
  const reason = messageOf(error);
  // A missing workspace does not come back without a user.
  const isRetryable = !(error instanceof HubRequestError && error.code === 'workspaceNotFound');
  const message = `The agent server cannot be used: ${reason}`;
  return new ReviewAgentError('agentUnavailable', message, { isRetryable, cause: error });
}
