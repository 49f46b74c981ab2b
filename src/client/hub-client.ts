import superjson from 'superjson';
import * as v from 'valibot';
import type { HttpAnswer } from '../lib/index.ts';
import {
  Chart,
  type DelegatedRequest,
  defaults,
  type EnsureInput,
  FleetThreadList,
  type HostInput,
  type HubEventData,
  type HubEventKind,
  hubEventKinds,
  type InboxAnswer,
  InspectionRecord,
  type MoveInput,
  MoveRecord,
  type MoveStepInput,
  MoveStepResult,
  type NotificationInput,
  NotificationResponse,
  type RestartInput,
  ShutdownResponse,
  type ThreadChange,
  type TokenRequest,
} from '../protocol/index.ts';
import {
  EventAnswer,
  type ExitAnswer,
  ExitListAnswer,
  FleetInboxListAnswer,
  FleetListAnswer,
  HostAnswer,
  HostListAnswer,
  HubThreadListAnswer,
  InboxDecisionAnswer,
  type InboxHistoryAnswer,
  InboxHistoryListAnswer,
  type InboxItemAnswer,
  InboxListAnswer,
  IssuedTokenAnswer,
  PlaceListAnswer,
  type PlaceStatusAnswer,
  RecordAnswer,
  RecordListAnswer,
  ScopedTokenAnswer,
  ScopedTokenListAnswer,
  StatusAnswer,
} from './answers.ts';
import { HubInvalidResponseError, HubUnavailableError, ServerNotProvenError } from './errors.ts';
import { readStream, type StreamOptions } from './event-stream.ts';
import { callHub, callHubJson, type HubAddress, type HubRequest, isLoopbackHttp } from './http.ts';
import { proveServer } from './proof.ts';

export interface HubClientOptions {
  /** Finds the Hub again after it was restarted elsewhere; streams continue there. */
  readonly relocate?: (signal: AbortSignal) => Promise<HubAddress | null>;
  /** Makes the Hub at an address prove itself before it gets the token; default: by its MAC alone. Rejects without a proof. */
  readonly prove?: (address: HubAddress, signal?: AbortSignal) => Promise<void>;
  /** Whether the Hub has just proved itself. */
  readonly isProven?: boolean;
}

export interface CallOptions {
  readonly signal?: AbortSignal | undefined;
}

/** One event of the Hub with the id to resume after. Kinds are open: `isHubEvent` recognises the known ones. */
export interface ReceivedEvent {
  readonly id: string;
  readonly kind: string;
  readonly at: string;
  readonly workspacePath: string | null;
  readonly data: Readonly<Record<string, unknown>>;
  /** Name of the host of the event, with `allHosts`; absent for this machine. */
  readonly host?: string;
}

export type EventsOptions = Pick<StreamOptions, 'signal' | 'lastEventId' | 'onOpen' | 'onLost'> & {
  /** True: wait for the next Hub after a shutdown. False (default): the stream ends with its Hub. */
  readonly acrossRestarts?: boolean;
  /** True: also events of all hosts. */
  readonly allHosts?: boolean;
};

export interface LogsOptions extends CallOptions {
  readonly stream?: 'stderr' | 'stdout';
  /** Number of bytes to read from the end. */
  readonly bytes?: number;
}

export interface ThreadsOptions extends CallOptions {
  /** Part of a name, a first request, an id or the name of a workspace. */
  readonly q?: string;
  /** Largest number of threads; default: 100. */
  readonly limit?: number;
  /** Whether to include archived threads. */
  readonly archived?: boolean;
  /** Whether to list only forks with their own files. */
  readonly forks?: boolean;
}

/**
 * True when `event` is of this kind and its data has the shape of that kind.
 *
 * @example if (isHubEvent(event, 'appserver.exited')) console.log(event.data.exitCode);
 */
export function isHubEvent<K extends HubEventKind>(
  event: ReceivedEvent,
  kind: K,
): event is ReceivedEvent & { readonly kind: K; readonly data: HubEventData<K> } {
  return event.kind === kind && v.is(hubEventKinds[kind].data, event.data);
}

/**
 * The Hub's HTTP interface (specification §4.2). Every method throws the errors of `callHub`.
 *
 * @example const hub = new HubClient({ apiBaseUrl: 'http://127.0.0.1:41234', token });
 */
export class HubClient {
  readonly address: HubAddress;
  readonly #options: HubClientOptions;
  #provenUntil = Number.NEGATIVE_INFINITY;

  constructor(address: HubAddress, options: HubClientOptions = {}) {
    this.address = address;
    this.#options = options;
    if (options.isProven) this.#provenUntil = performance.now() + defaults.client.proofMs;
  }

  /**
   * Version, process and capabilities of the Hub.
   *
   * @example const { hubVersion } = await hub.status();
   */
  status({ signal }: CallOptions = {}): Promise<StatusAnswer> {
    return callHubJson(this.address, { path: '/v1/status', idempotent: true, signal }, StatusAnswer);
  }

  /**
   * Finds or starts the agent server of a workspace; resolves when it is ready. The path must be absolute.
   *
   * @example const record = await hub.ensure({ workspacePath: '/home/me/site' });
   */
  ensure(input: EnsureInput, { signal }: CallOptions = {}): Promise<RecordAnswer> {
    return this.#post('/v1/appservers/ensure', input, RecordAnswer, signal, true);
  }

  /**
   * Lists the places for agent servers, and the reason if a place cannot run one now.
   *
   * @example for (const { kind, problem } of await hub.places()) console.log(kind, problem ?? 'ready');
   */
  places({ signal }: CallOptions = {}): Promise<PlaceStatusAnswer[]> {
    return this.#get({ path: '/v1/places', signal }, PlaceListAnswer);
  }

  /**
   * All live and known workspaces, sorted by canonical path.
   *
   * @example for (const { state } of await hub.list()) console.log(state);
   */
  list({ signal }: CallOptions = {}): Promise<RecordAnswer[]> {
    return this.#get({ path: '/v1/appservers', signal }, RecordListAnswer);
  }

  /**
   * One workspace, inspected; nothing is started.
   *
   * @example const record = await hub.byWorkspace('/home/me/site');
   */
  byWorkspace(path: string, { signal }: CallOptions = {}): Promise<RecordAnswer> {
    return this.#get({ path: '/v1/appservers/by-workspace', query: { path }, signal }, RecordAnswer);
  }

  /**
   * Resolves when the agent server and all its processes are gone. Unfinished turns resume with the next start, unless `endTurns` is true.
   *
   * @example await hub.stop('/home/me/site');
   */
  stop(
    workspacePath: string,
    { endTurns = false, signal }: CallOptions & { readonly endTurns?: boolean } = {},
  ): Promise<RecordAnswer> {
    // An older Hub knows no such field.
    const request = { workspacePath, ...(endTurns && { endTurns }) };
    return this.#post('/v1/appservers/stop', request, RecordAnswer, signal, true);
  }

  /**
   * Restarts the agent server of a workspace. Resolves when it is ready.
   *
   * @example await hub.restart({ workspacePath: '/home/me/site' });
   */
  restart(input: RestartInput, { signal }: CallOptions = {}): Promise<RecordAnswer> {
    return this.#post('/v1/appservers/restart', input, RecordAnswer, signal, false);
  }

  /**
   * Asks the Hub to end. With `detach` the agent servers live on, for the next Hub to adopt.
   *
   * @example await hub.shutdown({ detach: true });
   */
  async shutdown({ detach = false, signal }: CallOptions & { readonly detach?: boolean } = {}): Promise<void> {
    const query = { mode: detach ? 'detach' : undefined };
    await this.#json({ method: 'POST', path: '/v1/shutdown', query, signal }, ShutdownResponse);
  }

  /**
   * Requests a notification, which desktop clients show.
   *
   * @example await hub.requestNotification({ workspacePath, title: 'Done', body: 'All tests pass' });
   */
  async requestNotification(input: NotificationInput, { signal }: CallOptions = {}): Promise<boolean> {
    const path = '/v1/notifications/request';
    return (await this.#post(path, input, NotificationResponse, signal, false)).accepted;
  }

  /**
   * The end of the agent server's output, without tokens.
   *
   * @example console.log(await hub.logs('/home/me/site', { bytes: 10_000 }));
   */
  async logs(path: string, { stream, bytes, signal }: LogsOptions = {}): Promise<string> {
    const query = { path, stream, bytes: bytes?.toString() };
    const response = await this.#call({ path: '/v1/appservers/logs', query, signal, idempotent: true });
    return response.text();
  }

  /**
   * The last ends of the agent servers of a workspace, oldest first.
   *
   * @example for (const { at, signal } of await hub.exits('/home/me/site')) console.log(at, signal);
   */
  exits(path: string, { signal }: CallOptions = {}): Promise<ExitAnswer[]> {
    return this.#get({ path: '/v1/appservers/exits', query: { path }, signal }, ExitListAnswer);
  }

  /**
   * Approvals and questions of all workspaces that wait for a user, oldest first.
   *
   * @example for (const { displayName, request } of await hub.inbox()) console.log(displayName, request.target);
   */
  inbox({ signal }: CallOptions = {}): Promise<InboxItemAnswer[]> {
    return this.#get({ path: '/v1/inbox', signal }, InboxListAnswer);
  }

  /**
   * Decides an item of the inbox. The first answer counts: a later one throws `HubRequestError` with the code `alreadyDecided`.
   *
   * @example await hub.answerInbox(item.workspaceId, item.request.requestId, { decision: 'accept' });
   */
  answerInbox(
    workspaceId: string,
    requestId: string,
    answer: InboxAnswer,
    { signal }: CallOptions = {},
  ): Promise<InboxDecisionAnswer> {
    const path = `/v1/inbox/${encodeURIComponent(workspaceId)}/${encodeURIComponent(requestId)}`;
    return this.#post(path, answer, InboxDecisionAnswer, signal, false);
  }

  /**
   * Decisions of the inbox, newest first.
   *
   * @example for (const { at, decision, decidedBy } of await hub.inboxHistory({ limit: 20 })) console.log(at, decision, decidedBy);
   */
  inboxHistory({ limit, signal }: CallOptions & { readonly limit?: number } = {}): Promise<InboxHistoryAnswer[]> {
    const query = { limit: limit === undefined ? undefined : String(limit) };
    return this.#get({ path: '/v1/inbox/history', query, signal }, InboxHistoryListAnswer);
  }

  /**
   * Lists the other machines with their own Hub, by name.
   *
   * @example for (const { name, state } of await hub.hosts()) console.log(name, state);
   */
  hosts({ signal }: CallOptions = {}): Promise<HostAnswer[]> {
    return this.#get({ path: '/v1/hosts', signal }, HostListAnswer);
  }

  /**
   * Adds a host to the user's settings and connects it. Replaces a host of the same name.
   *
   * @example await hub.addHost({ name: 'build', ssh: 'ssh://me@build-box' });
   */
  addHost(host: HostInput, { signal }: CallOptions = {}): Promise<HostAnswer> {
    return this.#post('/v1/hosts', host, HostAnswer, signal, false);
  }

  /**
   * Enables, disables or removes a host.
   *
   * @example await hub.changeHost('build', 'disable');
   */
  changeHost(name: string, action: 'enable' | 'disable' | 'remove', { signal }: CallOptions = {}): Promise<HostAnswer> {
    return this.#post(`/v1/hosts/${encodeURIComponent(name)}/${action}`, {}, HostAnswer, signal, false);
  }

  /**
   * Starts or stops a workspace of a host. Throws `HubRequestError` with `hostUnreachable` while the host is not connected.
   *
   * @example const record = await hub.onHost('build', 'ensure', '/srv/site');
   */
  onHost(
    name: string,
    action: 'ensure' | 'stop',
    workspacePath: string,
    { signal }: CallOptions = {},
  ): Promise<RecordAnswer> {
    return this.#post(
      `/v1/hosts/${encodeURIComponent(name)}/${action}`,
      { workspacePath },
      RecordAnswer,
      signal,
      false,
    );
  }

  /**
   * Returns a page of the workspaces of all machines. Workspaces of an unreachable host keep their last known state.
   *
   * @example const { appServers } = await hub.fleet({ host: 'build' });
   */
  fleet({
    signal,
    ...query
  }: CallOptions & { readonly host?: string; readonly after?: string } = {}): Promise<FleetListAnswer> {
    return this.#get({ path: '/v1/fleet/appservers', query: { ...query, limit: '1000' }, signal }, FleetListAnswer);
  }

  /**
   * Lists the approvals and questions that wait for a user, on all machines.
   *
   * @example for (const { host, request } of await hub.fleetInbox()) console.log(host, request.target);
   */
  fleetInbox({ signal }: CallOptions = {}): Promise<v.InferOutput<typeof FleetInboxListAnswer>> {
    return this.#get({ path: '/v1/fleet/inbox', signal }, FleetInboxListAnswer);
  }

  /**
   * Passes a decision on an inbox item to the Hub of its host.
   *
   * @example await hub.answerOnHost('build', item.workspaceId, item.request.requestId, { decision: 'accept' });
   */
  answerOnHost(
    host: string,
    workspaceId: string,
    requestId: string,
    answer: InboxAnswer,
    { signal }: CallOptions = {},
  ): Promise<InboxDecisionAnswer> {
    const path = ['/v1/fleet/inbox', ...[host, workspaceId, requestId].map(encodeURIComponent)].join('/');
    return this.#post(path, answer, InboxDecisionAnswer, signal, false);
  }

  /**
   * Lists the conversations of this machine and of all connected hosts, the most recently active first.
   *
   * @example const { threads, missing } = await hub.fleetThreads({ q: 'tests' });
   */
  fleetThreads({ q, signal }: CallOptions & { readonly q?: string } = {}): Promise<FleetThreadList> {
    return this.#get({ path: '/v1/fleet/threads', query: { q }, signal }, FleetThreadList);
  }

  /**
   * Starts the move of a conversation to another machine. It continues without this client.
   *
   * @example const { moveId } = await hub.move({ threadId, from, to: { host: 'build', workspacePath: '/srv/site' } });
   */
  move(input: MoveInput, { signal }: CallOptions = {}): Promise<MoveRecord> {
    return this.#post('/v1/moves', input, MoveRecord, signal, false);
  }

  /**
   * Lists the moves that this Hub leads, and the last ended ones.
   *
   * @example for (const { threadId, state } of await hub.moves()) console.log(threadId, state);
   */
  moves({ signal }: CallOptions = {}): Promise<MoveRecord[]> {
    return this.#get({ path: '/v1/moves', signal }, v.array(MoveRecord));
  }

  /**
   * Goes back with a move, unless the target already has the conversation.
   *
   * @example await hub.cancelMove(moveId);
   */
  cancelMove(moveId: string, { signal }: CallOptions = {}): Promise<MoveRecord> {
    return this.#post(`/v1/moves/${encodeURIComponent(moveId)}/cancel`, {}, MoveRecord, signal, false);
  }

  /**
   * Runs one step of a move at a workspace of this Hub, for the Hub that leads the move.
   *
   * @example const { state } = await hub.moveStep({ workspacePath, step: 'state', moveId, threadId });
   */
  moveStep(step: MoveStepInput, { signal }: CallOptions = {}): Promise<MoveStepResult> {
    return this.#post('/v1/moves/steps', step, MoveStepResult, signal, false);
  }

  /**
   * Conversations of all workspaces, the most recently active first.
   *
   * @example const { threads } = await hub.threads({ q: 'tests', limit: 20 });
   */
  threads({ q, limit, archived, forks, signal }: ThreadsOptions = {}): Promise<HubThreadListAnswer> {
    const query = { q, limit: limit?.toString(), archived: archived?.toString(), forks: forks?.toString() };
    return this.#get({ path: '/v1/threads', query, signal }, HubThreadListAnswer);
  }

  /**
   * Renames, archives or unarchives a conversation.
   *
   * @example await hub.changeThread(workspaceId, threadId, { isArchived: true });
   */
  async changeThread(
    workspaceId: string,
    threadId: string,
    change: ThreadChange,
    { signal }: CallOptions = {},
  ): Promise<void> {
    const path = `/v1/threads/${encodeURIComponent(workspaceId)}/${encodeURIComponent(threadId)}`;
    await this.#post(path, change, v.unknown(), signal, false);
  }

  /**
   * Issues a scoped token for a program that leads workspaces.
   *
   * @example const { token } = await hub.issueToken({ name: 'lead', scopes: ['list', 'read'] });
   */
  issueToken(request: TokenRequest, { signal }: CallOptions = {}): Promise<IssuedTokenAnswer> {
    return this.#post('/v1/tokens', request, IssuedTokenAnswer, signal, false);
  }

  /**
   * Scoped tokens that have neither expired nor been revoked, the latest first.
   *
   * @example const names = (await hub.scopedTokens()).map(({ name }) => name);
   */
  scopedTokens({ signal }: CallOptions = {}): Promise<ScopedTokenAnswer[]> {
    return this.#get({ path: '/v1/tokens', signal }, ScopedTokenListAnswer);
  }

  /**
   * Ends a scoped token at once.
   *
   * @example await hub.revokeToken(tokenId);
   */
  revokeToken(tokenId: string, { signal }: CallOptions = {}): Promise<ScopedTokenAnswer> {
    return this.#post('/v1/tokens/revoke', { tokenId }, ScopedTokenAnswer, signal, false);
  }

  /**
   * Sends one request with a scoped token instead of the Hub's token.
   *
   * @example const workspaces = await hub.delegate({ do: 'list' }, token);
   */
  delegate(request: DelegatedRequest, token: string, { signal }: CallOptions = {}): Promise<unknown> {
    const { apiBaseUrl } = this.address;
    return callHubJson(
      { apiBaseUrl, token },
      { method: 'POST', path: '/v1/delegated', body: request, signal },
      v.unknown(),
    );
  }

  /**
   * The statecharts, drawn.
   *
   * @example const names = (await hub.machines()).map(({ name }) => name);
   */
  machines({ signal }: CallOptions = {}): Promise<Chart[]> {
    return this.#get({ path: '/v1/machines', signal }, v.array(Chart));
  }

  /**
   * Live events. A broken connection is resumed by id; events that the Hub no longer holds are reported by an event
   * `hub.gap`. Ends after the Hub was shut down, unless `acrossRestarts`.
   *
   * @example for await (const { kind } of hub.events()) console.log(kind);
   */
  async *events(options: EventsOptions = {}): AsyncGenerator<ReceivedEvent, void, undefined> {
    const { acrossRestarts = false, allHosts = false, ...stream } = options;
    const messages = readStream(this.address, {
      ...stream,
      path: allHosts ? '/v1/fleet/events' : '/v1/events',
      relocate: this.#options.relocate,
      prove: this.#prove,
      // A stream of all hosts ends with this Hub only.
      isLast: ({ event, data }) => !acrossRestarts && event === 'hub.stopping' && !(allHosts && hasHost(data)),
    });
    for await (const { data, lastEventId } of messages) {
      const { kind, at, workspacePath, data: payload, host } = parse(EventAnswer, parseJson(data), 'an event');
      yield { id: lastEventId, kind, at, workspacePath, data: payload ?? {}, ...(host !== null && { host }) };
    }
  }

  /**
   * Every actor of the Hub and every transition it takes, live. After a reconnection all actors are sent again.
   *
   * @example for await (const record of hub.inspect({ signal })) console.log(record.type);
   */
  async *inspect(
    options: Pick<StreamOptions, 'signal' | 'onOpen'> = {},
  ): AsyncGenerator<InspectionRecord, void, undefined> {
    const messages = readStream(this.address, {
      ...options,
      path: '/v1/inspect',
      relocate: this.#options.relocate,
      prove: this.#prove,
    });
    for await (const { data } of messages) {
      const record = v.safeParse(InspectionRecord, deserialize(data));
      // A record of a kind that this version does not know.
      if (record.success) yield record.output;
    }
  }

  async #json<S extends v.GenericSchema>(request: HubRequest, schema: S): Promise<v.InferOutput<S>> {
    return callHubJson(this.address, await this.#guarded(request), schema);
  }

  async #call(request: HubRequest): Promise<HttpAnswer> {
    return callHub(this.address, await this.#guarded(request));
  }

  /** Resolves when the Hub has proved itself; the request then has it do so again before it is sent a second time. */
  async #guarded(request: HubRequest): Promise<HubRequest> {
    const prove = () => this.#prove(this.address, request.signal);
    const isProven = performance.now() <= this.#provenUntil;
    // For one request only: in a moment the Hub may be dead and another program on its port.
    this.#provenUntil = Number.NEGATIVE_INFINITY;
    if (!isProven) await prove();
    return { ...request, beforeRetry: prove };
  }

  /** @throws HubUnavailableError when the Hub does not prove itself; the reason of `signal` when it aborts */
  readonly #prove = async (address: HubAddress, signal?: AbortSignal): Promise<void> => {
    const { apiBaseUrl, token, socketPath } = address;
    if (token === undefined) return;
    if (!isLoopbackHttp(apiBaseUrl)) throw new HubUnavailableError(`${apiBaseUrl} is not a loopback HTTP address.`);
    try {
      if (this.#options.prove) await this.#options.prove(address, signal);
      else await proveServer({ role: 'hub', url: apiBaseUrl, token, socketPath, signal });
    } catch (error) {
      if (!(error instanceof ServerNotProvenError)) throw error;
      throw new HubUnavailableError(error.message, { cause: error });
    }
  };

  #get<S extends v.GenericSchema>(request: HubRequest, schema: S): Promise<v.InferOutput<S>> {
    return this.#json({ ...request, idempotent: true }, schema);
  }

  #post<S extends v.GenericSchema>(
    path: string,
    body: unknown,
    schema: S,
    signal: AbortSignal | undefined,
    idempotent: boolean,
  ): Promise<v.InferOutput<S>> {
    return this.#json({ method: 'POST', path, body, signal, idempotent }, schema);
  }
}

/** Whether an event comes from another machine. */
const hasHost = (data: string): boolean => parse(EventAnswer, parseJson(data), 'an event').host !== null;

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new HubInvalidResponseError('A record of the event stream is not JSON.', { cause: error });
  }
}

function deserialize(text: string): unknown {
  const document = parseJson(text);
  return typeof document === 'object' && document !== null && 'json' in document
    ? superjson.deserialize(document as Parameters<typeof superjson.deserialize>[0])
    : document;
}

function parse<S extends v.GenericSchema>(schema: S, value: unknown, what: string): v.InferOutput<S> {
  const parsed = v.safeParse(schema, value);
  if (parsed.success) return parsed.output;
  throw new HubInvalidResponseError(`The Hub's answer is not ${what}.`);
}
