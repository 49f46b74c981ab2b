import { type Delegate, type DelegatedOrder, type DelegateOffers, noOffers } from '../agent/index.ts';
import type { Config } from '../config/index.ts';
import type { ConfigureOptions, ExternalAgent } from '../external/index.ts';
import { type AgentInUse, approvalsOfAgent, type PromptCommandInfo, version } from '../protocol/index.ts';
import { StoredOffers } from './stored-offers.ts';

export interface DelegatedAgentOptions extends ConfigureOptions {
  /** File of the last offers; undefined: they are not stored. */
  readonly offersFile?: string | undefined;
}

/** The configured external agent, loaded with its first turn: most workspaces have none. */
export class DelegatedAgent implements Delegate {
  readonly name: string;
  readonly #options: ConfigureOptions;
  #loading: Promise<ExternalAgent> | undefined;
  #loaded: ExternalAgent | undefined;
  readonly #stored: StoredOffers | undefined;
  readonly #listeners = new Set<() => void>();

  constructor({ offersFile, ...options }: DelegatedAgentOptions) {
    const { Name, Command } = options.agent;
    this.name = Name || (Command[0] ?? '');
    const { logger } = options;
    this.#stored =
      offersFile === undefined ? undefined : new StoredOffers({ file: offersFile, agent: this.name, logger });
    this.#options = {
      ...options,
      observe: (actor) => {
        options.observe?.(actor);
        const changed = () => {
          for (const listener of this.#listeners) listener();
        };
        // A failure of the actor is logged by its maker.
        actor.subscribe({ next: changed, error: changed });
      },
    };
  }

  /** Loads the code that its first turn needs, when no client waits for it. */
  warmUp(): void {
    // The turn loads the same module, and reports a failure.
    setImmediate(() => void import('../external/index.ts').catch(() => undefined));
  }

  prepare(threadId: string): void {
    // The turn waits for the same loading, and reports its failure.
    void this.#load().then(
      (agent) => agent.prepare(threadId),
      () => undefined,
    );
  }

  async run(order: DelegatedOrder, signal: AbortSignal) {
    const agent = await this.#load();
    const ended = await agent.run(order, signal);
    this.#stored?.put(agent.offers());
    return ended;
  }

  /** Before its first session those that were stored last. */
  offers(): DelegateOffers {
    const offers = this.#loaded?.offers() ?? noOffers;
    const isKnown = Object.values(offers).some((each: readonly unknown[]) => each.length > 0);
    return isKnown ? offers : (this.#stored?.offers ?? noOffers);
  }

  forget(threadId: string): void {
    this.#loaded?.forget(threadId);
  }

  endThread(threadId: string): void {
    this.#loaded?.endThread(threadId);
  }

  /** Describes the agent for health and records. */
  describe() {
    const { name } = this;
    const approvals = approvalsOfAgent(name);
    const absent = { kind: 'acp' as const, name, version: null, state: 'absent', approvals, lastError: null };
    return this.#loaded?.describe() ?? absent;
  }

  /** Calls the listener after each change of its state, and of much else about its process. */
  onChange(listener: () => void): void {
    this.#listeners.add(listener);
  }

  async close(): Promise<void> {
    await (await this.#loading?.catch(() => undefined))?.close();
    await this.#stored?.close();
  }

  #load(): Promise<ExternalAgent> {
    this.#loading ??= import('../external/index.ts').then(({ configuredAgent }) => {
      this.#loaded = configuredAgent(this.#options);
      return this.#loaded;
    });
    return this.#loading;
  }
}

/** Agent that does the turns of a workspace, for records. */
export function agentInUse(delegate: DelegatedAgent | undefined): AgentInUse {
  if (!delegate) return { kind: 'oratorio', name: 'oratorio', version, state: 'ready', approvals: 'asks' };
  const { kind, name, version: its, state, approvals } = delegate.describe();
  return { kind, name: name.slice(0, 200), version: its, state, approvals };
}

/** Commands that an external agent has offered. */
export function commandsOfAgent(delegate: DelegatedAgent | undefined): PromptCommandInfo[] {
  if (!delegate) return [];
  return delegate.offers().commands.map((command) => ({ ...command, path: '', agent: delegate.name }));
}

/** Enabled configured MCP servers in ACP form. Only stdio servers are passed on, so the secrets of HTTP servers stay here. */
export function mcpServersForAgents(
  servers: Config['McpServers'],
  env: Readonly<Record<string, string | undefined>>,
): unknown[] {
  return Object.entries(servers).flatMap(([name, settings]) => {
    if (!settings.enabled || settings.transport !== 'stdio') return [];
    const passed = settings.envVars.flatMap((variable) => {
      const value = env[variable];
      return value === undefined ? [] : [{ name: variable, value }];
    });
    return [{ name, command: settings.command, args: settings.args, env: [...passed, ...pairsOf(settings.env)] }];
  });
}

/** MCP servers that a client named for a thread, in ACP form. */
export const broughtServersForAgents = (servers: Config['McpServers']): unknown[] =>
  Object.entries(servers).map(([name, settings]) =>
    settings.transport === 'stdio'
      ? { name, command: settings.command, args: settings.args, env: pairsOf(settings.env) }
      : { type: 'http', name, url: settings.url, headers: pairsOf(settings.httpHeaders) },
  );

const pairsOf = (values: Readonly<Record<string, string>>) =>
  Object.entries(values).map(([name, value]) => ({ name, value }));
