import * as v from 'valibot';
import { type ActorRefFrom, createActor, fromCallback } from 'xstate';
import { type HostDriverEvent, type HostEmitted, type HostRefusal, hostMachine } from '../../machines/index.ts';
import type { HubAddress, HubClient, RecordAnswer } from '../client/index.ts';
import type { Logger } from '../log/index.ts';
import { type AnyHubEvent, type HostRecord, InboxItem } from '../protocol/index.ts';
import { clean } from './clean.ts';
import { inLocalTime } from './clock.ts';
import { clientOf, failureOf, openTunnel, prove } from './dial.ts';
import { hostFiles } from './directory.ts';
import { HostFailure, nextStep } from './failure.ts';
import { isEventId } from './fleet-log.ts';
import { RateLimit, Refresh } from './rate-limit.ts';
import { SshConnection } from './ssh.ts';

export interface HostSettings {
  readonly name: string;
  readonly ssh: string;
  readonly program: string;
  readonly isEnabled: boolean;
}

export interface HostOptions {
  readonly home: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly logger: Logger;
  readonly seed: () => number;
  readonly observe: (actor: ActorRefFrom<typeof hostMachine>, name: string) => void;
  /** Takes every event of the remote Hub, with its id. Returns its size in bytes. */
  readonly onEvent: (name: string, id: string, event: AnyHubEvent) => number;
  readonly onState: (name: string, event: HostEmitted) => void;
}

/** Last known state of a remote Hub. */
interface RemoteState {
  readonly records: readonly RecordAnswer[];
  readonly inbox: readonly InboxItem[];
  readonly at: string;
}

/** Client and address of a connected remote Hub. */
export interface Connected {
  readonly hub: HubClient;
  readonly address: HubAddress & { readonly token: string };
}

/** Time limit for reading the state of the remote Hub. */
const readMs = 20_000;
/** Time limit for finding the cause of a lost stream. */
const causeMs = 2_000;

/** A page shows every field of a request: one of another shape is left out. */
const isItem = (item: unknown): item is InboxItem => v.is(InboxItem, item);

/** Kinds of events that change the list or the inbox. */
const changing = /^(?:appserver|apiProxy|inbox|hub)\./;

/** One other machine: its settings, its actor, and the last known state of its Hub. */
export class Host {
  readonly settings: HostSettings;
  readonly #options: HostOptions;
  readonly #actor: ActorRefFrom<typeof hostMachine>;
  #seen: RemoteState | null = null;
  #connected: Connected | null = null;
  #reading: Refresh | null = null;
  #version: string | null = null;
  /** Milliseconds by which the clock of this machine is ahead of the remote one. */
  #clockOffsetMs = 0;
  #since = new Date().toISOString();
  #state = '';
  /** Id of the last received event. The next connection resumes after it. */
  #lastEventId: string | undefined;
  /** Resolves when all links have ended. */
  #closing: Promise<unknown> = Promise.resolve();

  /** @param before earlier connection to the same machine */
  constructor(settings: HostSettings, options: HostOptions, before?: Host) {
    this.settings = settings;
    this.#seen = before?.seen ?? null;
    this.#lastEventId = before === undefined ? undefined : before.#lastEventId;
    this.#options = options;
    const link = fromCallback<{ readonly type: 'NONE' }, { readonly name: string }>(({ sendBack }) => {
      const cut = new AbortController();
      const before = this.#closing;
      const run = before.then(() => this.#link(cut.signal, sendBack));
      this.#closing = run;
      return () => cut.abort();
    });
    this.#actor = createActor(hostMachine.provide({ actors: { link } }), {
      id: 'host',
      input: { name: settings.name, seed: options.seed() },
    });
    this.#actor.on('*', (event) => options.onState(settings.name, event));
    this.#actor.subscribe({
      next: ({ value }) => {
        const state = typeof value === 'string' ? value : (Object.keys(value)[0] ?? '');
        if (state === this.#state) return;
        this.#state = state;
        this.#since = new Date().toISOString();
      },
      error: (error) => options.logger.error('the host actor failed', { host: settings.name, error }),
    });
    options.observe(this.#actor, settings.name);
    this.#actor.start();
    if (settings.isEnabled) this.#actor.send({ type: 'HOST.ENABLE' });
  }

  get name(): string {
    return this.settings.name;
  }

  get seen(): RemoteState | null {
    return this.#seen;
  }

  /** Time when the shown state was read; null while connected. */
  get asOf(): string | null {
    return this.#connected === null ? (this.#seen?.at ?? this.#since) : null;
  }

  /** The remote Hub; null while it is not connected. */
  get connected(): Connected | null {
    return this.#connected;
  }

  /** Retries at once. Has no effect while the host is connected or connecting. */
  retry(): void {
    this.#actor.send({ type: 'HOST.RETRY' });
  }

  /** Resolves when list and inbox include every received event; undefined when they do. */
  current(): Promise<void> | undefined {
    return this.#reading?.current();
  }

  record(): HostRecord {
    const { name, ssh, program } = this.settings;
    const { value, context } = this.#actor.getSnapshot();
    const [state = '', child] = typeof value === 'string' ? [value] : (Object.entries(value)[0] ?? []);
    const inner = typeof child === 'string' ? child : null;
    const refusal = state === 'refused' ? (inner as HostRefusal) : null;
    return {
      ...{ name, ssh, program },
      state: (state === 'released' ? 'disabled' : state) as HostRecord['state'],
      phase: inner === null ? state : `${state}.${inner}`,
      reason: context.reason,
      next: nextStep({ refusal, remoteVersion: this.#version }, this.settings),
      version: this.#version,
      workspaces: this.#seen?.records.length ?? 0,
      waiting: this.#seen?.inbox.length ?? 0,
      since: this.#since,
      asOf: this.#seen?.at ?? null,
    };
  }

  /** Resolves when its `ssh` has ended. */
  async close(): Promise<void> {
    this.#actor.send({ type: 'HOST.RELEASE' });
    await this.#closing;
  }

  /** Runs one connection from the start of `ssh` to its end. Never rejects. */
  async #link(signal: AbortSignal, report: (event: HostDriverEvent) => void): Promise<void> {
    const { ssh: target, program, name } = this.settings;
    const { home, env, logger } = this.#options;
    let connection: SshConnection | null = null;
    const ending = new AbortController();
    const both = AbortSignal.any([signal, ending.signal]);
    try {
      both.throwIfAborted();
      const files = hostFiles(home, name);
      const onProblem = (error: unknown) =>
        logger.warn('could not write the record of an ssh process', { host: name, error });
      connection = await SshConnection.dial({ target, files, env, onProblem }, both);
      void connection.ended.then((failure) => ending.abort(failure));
      const { address, version, clockOffsetMs } = await openTunnel(connection, program, files.socket, both);
      report({ type: 'HOST.DIALLED' });
      await prove(address, both);
      logger.protect(address.token);
      this.#version = version;
      report({ type: 'HOST.PROVED' });
      this.#clockOffsetMs = clockOffsetMs;
      await this.#follow(address, both, report);
      throw new HostFailure(null, 'The remote Hub has ended the connection.');
    } catch (error) {
      if (!signal.aborted) this.#report(ending.signal.aborted ? ending.signal.reason : error, report);
    } finally {
      this.#connected = null;
      ending.abort();
      await connection
        ?.close()
        .catch((error: unknown) => logger.warn('an ssh process did not end', { host: name, error }));
    }
  }

  #report(error: unknown, report: (event: HostDriverEvent) => void): void {
    const { refusal, message: reason, remoteVersion } = failureOf(error);
    const { name } = this.settings;
    this.#version = remoteVersion ?? this.#version;
    this.#options.logger.info('a host is not connected', { host: name, reason, refusal });
    report(refusal === null ? { type: 'HOST.LOST', reason } : { type: 'HOST.REFUSED', refusal, reason });
  }

  /** Follows the events, and reads list and inbox again after each change. Ends with the stream. */
  async #follow(address: Connected['address'], signal: AbortSignal, report: (event: HostDriverEvent) => void) {
    const over = new AbortController();
    const both = AbortSignal.any([signal, over.signal]);
    const hub = clientOf(address);
    let failure: unknown;
    const fail = (error: unknown) => {
      failure ??= error;
      over.abort();
    };
    const reading = new Refresh(async () => {
      await this.#read(hub, both);
      this.#connected ??= { hub, address };
      report({ type: 'HOST.LISTED' });
    }, both);
    this.#reading = reading;
    const events = hub.events({
      signal: both,
      lastEventId: this.#lastEventId,
      acrossRestarts: true,
      // Reads the list only after the stream is open, so no change in between is missed.
      onOpen: () => void reading.soon().catch(fail),
      onLost: (reason) => void causeOf(hub, reason, both).then(fail),
    });
    const pace = new RateLimit(both);
    try {
      for await (const { id, ...event } of events) {
        // Each event of a Hub has one, and the next connection sends it as a header.
        if (!isEventId(id)) throw new HostFailure(null, 'The Hub there sent an event without a usable id.');
        this.#lastEventId = id;
        const bytes = this.#options.onEvent(this.name, id, clean(event));
        if (changing.test(event.kind)) {
          report({ type: 'HOST.CHANGED' });
          void reading.soon().catch(fail);
        }
        await pace.next(bytes);
      }
    } catch (error) {
      fail(error);
    } finally {
      over.abort();
      this.#reading = null;
    }
    signal.throwIfAborted();
    if (failure !== undefined) throw failure;
  }

  async #read(hub: HubClient, signal: AbortSignal): Promise<void> {
    const limited = AbortSignal.any([signal, AbortSignal.timeout(readMs)]);
    const at = new Date().toISOString();
    const [records, inbox] = await Promise.all([hub.list({ signal: limited }), hub.inbox({ signal: limited })]);
    const shown = <T>(value: T): T => inLocalTime(clean(value), this.#clockOffsetMs);
    this.#seen = { records: shown(records), inbox: shown(inbox).filter(isItem), at };
  }
}

/** Finds why a stream ended: a Hub that has revoked the token reports this to the next request. */
async function causeOf(hub: HubClient, reason: string, signal: AbortSignal): Promise<unknown> {
  const lost = new HostFailure(null, reason);
  try {
    await hub.inbox({ signal: AbortSignal.any([signal, AbortSignal.timeout(causeMs)]) });
    return lost;
  } catch (error) {
    return failureOf(error).refusal === null ? lost : error;
  }
}
