/** Other machines with their own Hub: their records, and responses that combine them with this Hub (`/v1/hosts`, `/v1/fleet`). */
import * as v from 'valibot';
import { AppServerRecord } from './hub.ts';
import { AnyHubEvent } from './hub-events.ts';
import { HubThread, ThreadWorkspace } from './hub-threads.ts';
import { InboxItem } from './inbox.ts';

const text = (description: string) => v.pipe(v.string(), v.description(description));
const nullable = (description: string) => v.pipe(v.nullable(v.string()), v.description(description));

/** Hosts per Hub at most. Each runs its own `ssh` process. */
export const maxHosts = 50;

const nameWords = '1 to 32 lower-case letters, digits and hyphens, beginning with a letter';
export const HostName = v.pipe(v.string(nameWords), v.regex(/^[a-z][a-z0-9-]{0,31}$/, nameWords));

const targetWords = 'an address such as ssh://me@box or ssh://box:2222';
/** Excludes options of `ssh`, and characters that a shell or a proxy command expands. */
export const SshTarget = v.pipe(
  v.string(targetWords),
  v.maxLength(300, targetWords),
  v.regex(
    /^ssh:\/\/(?:[A-Za-z0-9_][\w.-]*@)?(?:[A-Za-z0-9_][\w.-]*|\[[0-9A-Fa-f:.]+\])(?::[1-9]\d{0,4})?$/,
    targetWords,
  ),
);

const programWords = 'the name of a program, an absolute path, or a path that begins with ~/';
export const RemoteProgram = v.pipe(
  v.string(programWords),
  v.maxLength(1_000, programWords),
  v.regex(/^(?:~?\/[ -~\u00a0-\uffff]+|[A-Za-z0-9_][\w.-]*)$/, programWords),
);

/** Body of `POST /v1/hosts`. */
export const HostInput = v.strictObject({
  name: v.pipe(HostName, v.description('Name of the host, chosen by the user.')),
  ssh: v.pipe(SshTarget, v.description('Address for `ssh`; a host alias of its configuration is allowed.')),
  program: v.optional(v.pipe(RemoteProgram, v.description('Command on that machine; absent: oratorio.'))),
});
export type HostInput = v.InferInput<typeof HostInput>;

export const hostActions = ['enable', 'disable', 'remove', 'ensure', 'restart', 'stop'] as const;
/** Body of `POST /v1/hosts/{name}/{action}`. */
export const HostActionInput = v.strictObject({
  workspacePath: v.optional(text('For ensure, restart and stop: absolute path of a workspace on that machine.')),
});

export const hostStates = ['disabled', 'connecting', 'connected', 'unreachable', 'refused'] as const;

/** One host: `GET /v1/hosts`. */
export const HostRecord = v.object({
  name: text('Name of the host.'),
  ssh: text('Address for `ssh`.'),
  program: text('Command on that machine.'),
  state: v.pipe(v.picklist(hostStates), v.description('State of the connection. Agents continue while it is lost.')),
  phase: text('State with its substate, e.g. refused.hostKey.'),
  reason: nullable('Reason why the host is unreachable or refused; null while connected.'),
  next: nullable('Next step for the user; null when there is nothing to do.'),
  version: nullable('Version of the remote Hub; null before the first connection.'),
  workspaces: v.pipe(v.number(), v.description('Number of workspaces on the host when last read.')),
  waiting: v.pipe(v.number(), v.description('Number of requests on the host that wait for a user, when last read.')),
  since: text('Start of the present state, in ISO 8601.'),
  asOf: nullable('Time when the workspaces were last read, in ISO 8601; null before the first time.'),
});
export type HostRecord = v.InferOutput<typeof HostRecord>;

const where = {
  host: nullable('Name of the host; null for this machine.'),
  asOf: nullable('Time of the last known state, in ISO 8601; null while the host is connected.'),
};

/** Workspace on this machine or on a host. */
export const FleetRecord = v.object({ ...AppServerRecord.entries, ...where });
export type FleetRecord = v.InferOutput<typeof FleetRecord>;

/** Groups of states that the list is filtered by. */
export const fleetGroups = ['trouble', 'ready', 'asleep', 'stopped'] as const;
export type FleetGroup = (typeof fleetGroups)[number];

const number = (description: string) => v.pipe(v.number(), v.description(description));
/** Sums of the workspaces of one machine. */
export const FleetSum = v.object({
  host: where.host,
  workspaces: number('Number of workspaces.'),
  trouble: number('Workspaces that fail, are degraded, do not answer or gave up.'),
  ready: number('Workspaces that are ready.'),
  asleep: number('Workspaces that sleep until the next request.'),
  stopped: number('Workspaces that were stopped or have ended.'),
  waiting: number('Approvals that wait for a user.'),
  costUsd: number('Cost of all kept turns in US dollars.'),
});
export type FleetSum = v.InferOutput<typeof FleetSum>;

/** Answer of `GET /v1/fleet/appservers`. */
export const FleetList = v.object({
  appServers: v.pipe(
    v.array(FleetRecord),
    v.description('Workspaces of this machine and of each host: one page of those that match.'),
  ),
  hosts: v.pipe(v.array(HostRecord), v.description('All hosts, connected or not.')),
  sums: v.pipe(
    v.array(FleetSum),
    v.description(
      'Sums of this machine, then of each host, without filters. Servers that run without this Hub count as stopped.',
    ),
  ),
  next: nullable('Value of `after` for the next page; null on the last one.'),
});
export type FleetList = v.InferOutput<typeof FleetList>;

/** Request on this machine or on a host: `GET /v1/fleet/inbox`. */
export const FleetInboxItem = v.object({ ...InboxItem.entries, ...where });
export type FleetInboxItem = v.InferOutput<typeof FleetInboxItem>;

/** Answer of `GET /v1/fleet/threads`. */
export const FleetThreadList = v.object({
  threads: v.pipe(
    v.array(v.object({ ...HubThread.entries, host: where.host })),
    v.description('Conversations, the most recently active first.'),
  ),
  hasMore: v.pipe(v.boolean(), v.description('Whether older conversations exist: search, or raise the limit.')),
  workspaces: v.pipe(
    v.array(v.object({ ...ThreadWorkspace.entries, host: where.host })),
    v.description('Their workspaces, whose databases were read.'),
  ),
  missing: v.pipe(v.array(v.string()), v.description('Names of hosts that did not answer.')),
});
export type FleetThreadList = v.InferOutput<typeof FleetThreadList>;

/** One event of `GET /v1/fleet/events`. */
export const FleetEvent = v.object({
  id: text('`<host>~<id>`: name of the host, empty for this machine, and the id of the event at its Hub.'),
  host: where.host,
  ...AnyHubEvent.entries,
});
export type FleetEvent = v.InferOutput<typeof FleetEvent>;

/** Output of `oratorio hub address --json`, for the Hub of another machine of the same user. */
export const RemoteAddress = v.object({
  apiBaseUrl: v.pipe(
    v.string(),
    v.regex(/^http:\/\/(?:127\.0\.0\.1|\[::1\]|localhost):[1-9]\d{0,4}\/?$/),
    v.description('Loopback base address of the Hub.'),
  ),
  version: v.pipe(v.string(), v.maxLength(100), v.description('Version of the Hub.')),
  tokenId: v.pipe(v.string(), v.maxLength(100), v.description('Id of the token, for `oratorio tokens revoke`.')),
  token: v.pipe(v.string(), v.minLength(20), v.maxLength(4_096), v.description('Scoped token for another Hub.')),
  now: v.optional(v.pipe(v.string(), v.isoTimestamp(), v.description('Time of that machine, in ISO 8601.'))),
});
export type RemoteAddress = v.InferOutput<typeof RemoteAddress>;
