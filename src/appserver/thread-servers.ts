import { createHash } from 'node:crypto';
import type { Tool } from '../agent/index.ts';
import { isSecretName } from '../config/index.ts';
import type { McpServers, McpServersOptions } from '../mcp/index.ts';
import type { McpServerSettings, McpServerStatus } from '../protocol/index.ts';

type Settings = Readonly<Record<string, McpServerSettings>>;

export interface ThreadServersOptions {
  /** Options of the servers of one thread. */
  readonly common: (threadId: string) => Omit<McpServersOptions, 'servers' | 'scopeOf'>;
  /** Names of configured servers, which take precedence over a client's servers. */
  readonly configured: ReadonlySet<string>;
  /** Whether an external agent does the turns of the thread: it starts the servers itself. */
  readonly isDelegated: (threadId: string) => boolean;
  /** Adds the tools of the servers to the thread; undefined: removes them. @throws AgentError threadNotFound */
  readonly serve: (threadId: string, tools: (() => readonly Tool[]) | undefined) => void;
  /** Removes a secret from all later output. */
  readonly protect: (secret: string) => void;
  readonly onBug: (error: unknown) => void;
}

/** Servers after their start, and names of configured servers that take the place of others. */
export interface StartedServers {
  readonly data: McpServerStatus[];
  readonly configured: string[];
}

interface Brought {
  /** Connection that named the servers. */
  readonly owner: AbortSignal;
  readonly settings: Settings;
  servers?: McpServers;
}

/** MCP servers that clients name for single threads. They end with their client's connection, or with the thread. */
export class ThreadServers {
  readonly #options: ThreadServersOptions;
  readonly #byThread = new Map<string, Brought>();
  readonly #ends = new Set<Promise<void>>();
  readonly #owners = new WeakSet<AbortSignal>();

  constructor(options: ThreadServersOptions) {
    this.#options = options;
  }

  /**
   * Starts servers in place of the earlier ones of the thread. Resolves when each is ready or has failed.
   *
   * @throws AgentError threadNotFound
   */
  async set(threadId: string, owner: AbortSignal, wanted: Settings): Promise<StartedServers> {
    const { common, configured, isDelegated, serve, protect } = this.#options;
    const settings = Object.fromEntries(Object.entries(wanted).filter(([name]) => !configured.has(name)));
    const replaced = Object.keys(wanted).filter((name) => configured.has(name));
    const isHandedOn = isDelegated(threadId);
    for (const secret of Object.values(settings).flatMap(secretsOf)) protect(secret);
    const brought: Brought = { owner, settings };
    serve(threadId, () => brought.servers?.tools() ?? []);
    const earlier = this.#end(threadId);
    this.#byThread.set(threadId, brought);
    this.#follow(owner);
    await earlier;
    if (isHandedOn || Object.keys(settings).length === 0) return { data: [], configured: replaced };
    const { McpServers } = await import('../mcp/index.ts');
    // The client may have left in the meantime.
    if (owner.aborted || this.#byThread.get(threadId) !== brought) return { data: [], configured: replaced };
    const servers = new McpServers({ ...common(threadId), servers: settings, scopeOf });
    brought.servers = servers;
    servers.start();
    await servers.settled();
    return { data: servers.status(), configured: replaced };
  }

  /** Ends all servers of a connection with it. */
  #follow(owner: AbortSignal): void {
    if (this.#owners.has(owner)) return;
    this.#owners.add(owner);
    const leave = () => {
      for (const threadId of [...this.#byThread.keys()]) this.release(threadId, owner);
    };
    owner.addEventListener('abort', leave, { once: true });
  }

  /** Servers of a thread, for an external agent. */
  of(threadId: string): Settings {
    return this.#byThread.get(threadId)?.settings ?? {};
  }

  /** Ends the servers of a thread, if `owner` named them. */
  release(threadId: string, owner?: AbortSignal): void {
    const brought = this.#byThread.get(threadId);
    if (!brought || (owner && brought.owner !== owner)) return;
    this.#byThread.delete(threadId);
    this.#options.serve(threadId, undefined);
    this.#track(brought);
  }

  /** Ends all servers. Resolves when nothing is left of them. */
  async close(): Promise<void> {
    for (const threadId of [...this.#byThread.keys()]) this.release(threadId);
    await Promise.all(this.#ends);
  }

  #end(threadId: string): Promise<void> {
    const brought = this.#byThread.get(threadId);
    return brought ? this.#track(brought) : Promise.resolve();
  }

  #track({ servers }: Brought): Promise<void> {
    if (!servers) return Promise.resolve();
    const end = servers
      .close()
      .catch(this.#options.onBug)
      .finally(() => this.#ends.delete(end));
    this.#ends.add(end);
    return end;
  }
}

/** Scope of approvals for a client's server: its command or address. */
function scopeOf(name: string, settings: McpServerSettings): string {
  const what = settings.transport === 'stdio' ? [settings.command, settings.args] : [settings.url];
  return `${name}:${createHash('sha256').update(JSON.stringify(what)).digest('base64url').slice(0, 16)}`;
}

/** Secrets of a server, without other values, whose removal would delete ordinary words from texts. */
function secretsOf(settings: McpServerSettings): string[] {
  if (settings.transport !== 'stdio') return Object.values(settings.httpHeaders);
  return Object.entries(settings.env).flatMap(([name, value]) => (isSecretName(name) ? [value] : []));
}
