/** Every event kind of the Hub (specification §6.1) with the schema of its data. The one table. */
import * as v from 'valibot';

const text = (description: string) => v.pipe(v.string(), v.description(description));
const number = (description: string) => v.pipe(v.number(), v.description(description));
const flag = (description: string) => v.pipe(v.boolean(), v.description(description));
const textOrNull = (description: string) => v.pipe(v.nullable(v.string()), v.description(description));
const numberOrNull = (description: string) => v.pipe(v.nullable(v.number()), v.description(description));

const endpoints = v.pipe(v.record(v.string(), v.string()), v.description('URLs by service name, tokens included.'));
/** End of a process, of a server or a sidecar. */
const exit = {
  pid: v.optional(numberOrNull('Process id; null when there never was a process.')),
  exitCode: v.optional(numberOrNull('Null when it was ended by a signal, or its end was not observed.')),
  signal: v.optional(textOrNull('Name of the signal that ended it.')),
  error: v.optional(textOrNull('Reason, in a sentence.')),
  recentStderr: v.optional(textOrNull('The tail of standard error, tokens removed.')),
  stopped: v.optional(flag('True when it was asked to stop.')),
};

export const hubEventKinds = {
  'hub.started': {
    meaning: 'The Hub has started.',
    data: v.object({ apiBaseUrl: text('Loopback base address.'), pid: number('Process id of the Hub.') }),
  },
  'hub.stopping': { meaning: 'The Hub is stopping.', data: v.object({ pid: number('Process id of the Hub.') }) },
  'hub.gap': {
    meaning: 'Events between the id the reader last saw and the next one are no longer held.',
    data: v.object({
      lastEventId: text('The id that the reader sent.'),
      reason: v.pipe(
        v.picklist(['evicted', 'otherEpoch', 'unknownId']),
        v.description('Too long ago, of an earlier Hub, or never given.'),
      ),
    }),
  },
  'port.allocated': {
    meaning: 'A local port was allocated for a service of a workspace.',
    data: v.object({ service: text('Name of the service.'), port: number('Loopback TCP port.') }),
  },
  'appserver.starting': {
    meaning: 'An agent server is starting; attempt and delayMs when the supervisor restarts it.',
    data: v.object({
      endpoints,
      attempt: v.optional(number('Automatic restarts since the last stable run, this one included.')),
      delayMs: v.optional(number('The pause before this restart, in milliseconds.')),
    }),
  },
  'appserver.running': {
    meaning: 'An agent server is ready.',
    data: v.object({
      pid: number('Process id of the agent server.'),
      endpoints,
      recovered: v.optional(flag('True when it was unhealthy and answers again.')),
      adopted: v.optional(flag('True when an earlier Hub started it.')),
      external: v.optional(flag('True when it was started outside the Hub.')),
      turnsResumed: v.optional(number('Unfinished turns of an earlier agent server that resume; absent: none.')),
    }),
  },
  'appserver.exited': {
    meaning: 'An agent server has exited, or could not be started.',
    data: v.object({
      ...exit,
      hubStopping: v.optional(flag('True when it was stopped because the Hub is stopping.')),
      reason: v.optional(
        text(
          'Why it was stopped: user, idle, hub, restart or unhealthy. After idle it is asleep: a request starts it.',
        ),
      ),
      nextAttemptAt: v.optional(textOrNull('When the supervisor will start it again; null when it will not.')),
    }),
  },
  'appserver.unhealthy': {
    meaning: 'Health checks failed several times in a row.',
    data: v.object({
      pid: numberOrNull('Process id of the agent server.'),
      error: text('Error of the last probe.'),
      consecutiveFailures: number('Probes that failed in a row.'),
    }),
  },
  'appserver.health': {
    meaning: 'The health of a workspace has changed, or its requests that wait for a user.',
    data: v.object({
      health: text('unknown, healthy, degraded or failing.'),
      code: textOrNull('Code of the failure it rests on; null without one.'),
      pendingApprovals: number('Approvals that wait for a user.'),
      agent: textOrNull('State of the agent that does the turns; null when it is unknown.'),
    }),
  },
  'place.lost': {
    meaning:
      'The container engine of an agent server does not answer. The agent server keeps its state and is not restarted.',
    data: v.object({ engine: text('Unix socket of the engine.') }),
  },
  'place.back': {
    meaning: 'The container engine of an agent server answers again.',
    data: v.object({ engine: text('Unix socket of the engine.') }),
  },
  'apiProxy.running': {
    meaning: 'The sidecar is ready.',
    data: v.object({ pid: number('Process id of the sidecar.'), endpoint: text('Its loopback address.') }),
  },
  'apiProxy.unhealthy': {
    meaning: 'The sidecar does not answer health checks.',
    data: v.object({
      endpoint: text('Its loopback address.'),
      pid: numberOrNull('Process id of the sidecar.'),
      error: text('Error of the last probe.'),
      consecutiveFailures: number('Probes that failed in a row.'),
    }),
  },
  'apiProxy.exited': {
    meaning: 'The sidecar has exited.',
    data: v.object({
      endpoint: text('Its loopback address.'),
      ...exit,
    }),
  },
  'inbox.added': {
    meaning: 'An approval or a question of a workspace waits for a user.',
    data: v.object({
      workspaceId: text('Id of the workspace.'),
      requestId: text('Id of the request.'),
      threadId: text('The conversation that waits.'),
      tool: text('Name of the tool.'),
      operation: text('Operation in one word.'),
      actionUrl: text('Path on the Hub of the conversation.'),
      expiresAt: text('When it declines itself, as ISO 8601.'),
    }),
  },
  'inbox.resolved': {
    meaning: 'A request of the inbox was decided, or withdrawn because its turn or agent server has ended.',
    data: v.object({
      workspaceId: text('Id of the workspace.'),
      requestId: text('Id of the request.'),
      decision: text('The decision; cancel when it was withdrawn.'),
      decidedBy: text(
        'Where: terminal, page, editor, the name of a client, timeout or policy; agent: its turn or agent server has ended.',
      ),
      reason: text('answered, expired, turnEnded or agentServerEnded.'),
      decidedAt: textOrNull('When the agent server took the decision, as ISO 8601; null when it has ended.'),
    }),
  },
  'host.connected': {
    meaning: 'The Hub of another machine is connected.',
    data: v.object({ host: text('Name of the host.') }),
  },
  'host.unreachable': {
    meaning: 'The connection to another machine is lost; its agents continue.',
    data: v.object({ host: text('Name of the host.'), reason: text('Reason, in a sentence.') }),
  },
  'host.refused': {
    meaning: 'The connection to another machine is refused until the user acts.',
    data: v.object({
      host: text('Name of the host.'),
      refusal: text('hostKey, authentication, noProgram, version or notProven.'),
      reason: text('Reason, in a sentence.'),
    }),
  },
  'notification.requested': {
    meaning: 'A local notification awaits display.',
    data: v.object({
      workspacePath: textOrNull('The workspace it concerns.'),
      kind: text('Event in one word.'),
      title: text('The line to show.'),
      body: textOrNull('More to show.'),
      severity: text('info, success, warning or error.'),
      source: textOrNull('Who asked for it.'),
      actionUrl: textOrNull('What to open when it is clicked.'),
    }),
  },
} as const;

export type HubEventKind = keyof typeof hubEventKinds;
export type HubEventData<K extends HubEventKind> = v.InferOutput<(typeof hubEventKinds)[K]['data']>;

/** One record of `GET /v1/events` (specification §2.6). All four keys are always there. */
export type HubEvent<K extends HubEventKind = HubEventKind> = {
  [Kind in K]: {
    readonly kind: Kind;
    readonly at: string;
    readonly workspacePath: string | null;
    readonly data: HubEventData<Kind>;
  };
}[K];

/** Guarantees for clients: kinds are open, payloads are extensible (specification §6.1 and §9). */
export const AnyHubEvent = v.object({
  kind: v.string(),
  at: v.string(),
  workspacePath: v.nullable(v.string()),
  data: v.record(v.string(), v.unknown()),
});
export type AnyHubEvent = v.InferOutput<typeof AnyHubEvent>;

/** A record with the id that its stream gives it: resuming after it continues without a gap. */
export const RecentEvent = v.object({
  id: v.pipe(v.string(), v.description('Id of the event, for `Last-Event-ID`.')),
  ...AnyHubEvent.entries,
});
export type RecentEvent = v.InferOutput<typeof RecentEvent>;
