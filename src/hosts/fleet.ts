import { setTimeout as sleep } from 'node:timers/promises';
import { messageOf } from '../lib/index.ts';
import { type AnyHubEvent, type HostRecord, maxHosts } from '../protocol/index.ts';
import { clean } from './clean.ts';
import { endOrphanedSsh } from './directory.ts';
import { FleetLog } from './fleet-log.ts';
import { type Connected, Host, type HostOptions, type HostSettings } from './host.ts';

export type FleetOptions = Omit<HostOptions, 'onEvent'>;

/** Error for a host that is unknown or not connected, or exceeds the limit. */
export class HostUnavailableError extends Error {
  override readonly name = 'HostUnavailableError';
  readonly code: 'hostUnknown' | 'hostUnreachable' | 'invalidRequest';
  readonly details: Readonly<Record<string, unknown>> | null;

  constructor(code: HostUnavailableError['code'], message: string, details: HostUnavailableError['details'] = null) {
    super(message);
    this.code = code;
    this.details = details;
  }
}

/** Conversations of one host. */
export interface HostThreads {
  readonly host: string;
  readonly list: Awaited<ReturnType<Connected['hub']['threads']>> | null;
}

const threadsMs = 8_000;
/** Longest wait for lists that are being read again. */
const currentMs = 1_500;

/** All hosts of a Hub. Starts no `ssh` before `open`. */
export class Fleet {
  readonly log = new FleetLog();
  readonly #options: FleetOptions;
  readonly #hosts = new Map<string, Host>();
  #changes: Promise<unknown> = Promise.resolve();
  #isClosed = false;

  constructor(options: FleetOptions) {
    this.#options = options;
  }

  /** Ends the processes that a killed Hub left running, then connects the enabled hosts. */
  open(settings: readonly HostSettings[]): void {
    const { home, logger } = this.#options;
    void this.inTurn(async () => {
      await endOrphanedSsh(home).then(
        (count) => count > 0 && logger.warn('ended ssh processes of an earlier Hub', { count }),
        (error: unknown) =>
          logger.warn('could not search for ssh processes of an earlier Hub; the next start tries again', { error }),
      );
      this.#addAll(settings);
    });
  }

  /**
   * Runs changes of hosts one after the other: two hosts of one name would share files, and one would be lost.
   *
   * @throws HostUnavailableError when the Hub ends
   */
  inTurn<T>(change: () => Promise<T>): Promise<T> {
    if (this.#isClosed) throw new HostUnavailableError('hostUnreachable', 'The Hub ends. Nothing was changed.');
    const done = this.#changes.then(change);
    this.#changes = done.catch(() => undefined);
    return done;
  }

  /** @throws HostUnavailableError when the limit of hosts is reached */
  requireRoom(name: string): void {
    if (!this.#hosts.has(name) && this.#hosts.size >= maxHosts)
      throw new HostUnavailableError('invalidRequest', `The limit of ${maxHosts} hosts is reached: remove one first.`);
  }

  /** Adds a host, or replaces the host of this name. For `inTurn` only. */
  async put(settings: HostSettings): Promise<Host> {
    const before = this.#hosts.get(settings.name);
    await before?.close();
    // A machine that stays keeps its last known state, and its events resume.
    return this.#add(settings, before?.settings.ssh === settings.ssh ? before : undefined);
  }

  /** Resolves when its `ssh` has ended. For `inTurn` only. @throws HostUnavailableError */
  async remove(name: string): Promise<HostRecord> {
    const host = this.byName(name);
    this.#hosts.delete(name);
    this.log.forget(name);
    await host.close();
    return host.record();
  }

  /** @throws HostUnavailableError `hostUnknown` */
  byName(name: string): Host {
    const host = this.#hosts.get(name);
    if (host) return host;
    throw new HostUnavailableError(
      'hostUnknown',
      `There is no host ${name.slice(0, 40)}. List the hosts: oratorio hosts`,
    );
  }

  hosts(): readonly Host[] {
    return [...this.#hosts.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
  }

  /**
   * Returns the Hub of a host. Retries the connection at once if it is lost. A refusal stays until the user enables the host: a page
   * repeats requests without its user, and each attempt would issue another token.
   *
   * @throws HostUnavailableError
   */
  connected(name: string): Connected {
    const host = this.byName(name);
    if (host.connected) return host.connected;
    const { state, reason, asOf } = host.record();
    if (state !== 'refused') host.retry();
    const why = reason === null ? '' : `: ${reason}`;
    throw new HostUnavailableError('hostUnreachable', `The host ${name} is ${state}${why}. Nothing was sent to it.`, {
      ...{ host: name, state, reason, asOf },
    });
  }

  /** Resolves when the list of each connected host includes every event that was passed on so far, or after a limit. */
  async current(): Promise<void> {
    const waits = this.hosts().flatMap((host) => host.current() ?? []);
    if (waits.length === 0) return;
    const over = new AbortController();
    await Promise.race([
      Promise.all(waits),
      sleep(currentMs, undefined, { signal: over.signal }).catch(() => undefined),
    ]);
    over.abort();
  }

  /** Lists the conversations of every connected host; null for a host that does not answer in time. */
  threads(query: { readonly q?: string; readonly limit: number }): Promise<HostThreads[]> {
    return Promise.all(
      this.hosts().map(async ({ name, connected }) => ({
        host: name,
        list: connected
          ? await connected.hub.threads({ ...query, signal: AbortSignal.timeout(threadsMs) }).then(clean, (error) => {
              this.#options.logger.info('could not list the conversations of a host', {
                host: name,
                reason: messageOf(error),
              });
              return null;
            })
          : null,
      })),
    );
  }

  /** Ends the stream and every `ssh`. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.log.end();
    await this.#changes;
    await Promise.all([...this.#hosts.values()].map((host) => host.close()));
  }

  #addAll(settings: readonly HostSettings[]): void {
    if (this.#isClosed) return;
    for (const each of settings) if (!this.#hosts.has(each.name)) this.#add(each);
  }

  #add(settings: HostSettings, before?: Host): Host {
    const onEvent = (name: string, id: string, event: AnyHubEvent) => this.log.append(name, id, event);
    const host = new Host(settings, { ...this.#options, onEvent }, before);
    this.#hosts.set(settings.name, host);
    return host;
  }
}
