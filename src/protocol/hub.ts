/**
 * Every shape of the Hub API (specification §2.2–2.7), once. Types are inferred from these schemas and
 * `GET /v1/openapi.json` and `docs/hub-api.md` are generated from them. Incoming objects tolerate unknown fields (specification §9).
 */
import * as v from 'valibot';
import { presetNames } from './agent-words.ts';
import { AgentInUse } from './agents.ts';
import { Incident } from './exits.ts';
import { HealthState, LastTurn, ModelInUse, Problem, SandboxState } from './health.ts';
import { knownProviderNames } from './known-providers.ts';
import { ProcessIdentity } from './launch.ts';

const text = (description: string) => v.pipe(v.string(), v.description(description));
const textOrNull = (description: string) => v.pipe(v.nullable(v.string()), v.description(description));
const isoTime = (description: string) => v.pipe(v.string(), v.isoTimestamp(), v.description(description));
const processId = v.pipe(v.number(), v.integer(), v.minValue(1), v.description('Process id.'));

/** Answer of the proof route of each server: see `proof.ts`. */
export const ServerProof = v.object({
  proof: text('HMAC-SHA256 in base64url, keyed with the token that `key` names.'),
  use: v.pipe(v.picklist(['token', 'exchange']), v.description('`exchange`: a dashboard token of an earlier start.')),
  instance: text('Names this process in an exchange of dashboard tokens.'),
});

/** `hub.lock` (specification §2.2). Clients must verify it before they trust it (specification §4.2 rule 3). */
export const HubLock = v.object({
  pid: processId,
  apiBaseUrl: v.pipe(v.string(), v.url(), v.description('Loopback base address of the Hub.')),
  token: text('Bearer token of every route but GET /v1/status.'),
  startedAt: isoTime('When this Hub started.'),
  version: text('Version of the Hub.'),
  identity: v.optional(ProcessIdentity),
});
export type HubLock = v.InferOutput<typeof HubLock>;

/** `GET /v1/status` (specification §2.3). */
export const HubStatus = v.object({
  hubVersion: text('Version of the Hub.'),
  pid: processId,
  startedAt: isoTime('When this Hub started.'),
  statePath: text('Directory that holds hub.lock and appservers.json.'),
  apiBaseUrl: text('Loopback base address.'),
  capabilities: v.object({
    appServerManagement: v.boolean(),
    portManagement: v.boolean(),
    events: v.boolean(),
    notifications: v.boolean(),
    tray: v.pipe(v.boolean(), v.description('False: headless; the desktop client owns tray and notification UI.')),
    places: v.pipe(
      v.optional(v.array(v.string())),
      v.description('Places besides `local`; absent without one. `pod`: `Place.Pod.Volumes` is set.'),
    ),
  }),
  problems: v.pipe(
    v.optional(v.array(Problem)),
    v.description('Problems of the Hub itself, e.g. a damaged list of workspaces; absent without one.'),
  ),
  asleep: v.pipe(
    v.optional(v.number()),
    v.description('Workspaces that sleep: the next request starts their agent server. Absent without one.'),
  ),
});
export type HubStatus = v.InferOutput<typeof HubStatus>;

/** The six public states of a workspace's agent server (specification §2.4 and §3). */
export const appServerStates = ['stopped', 'starting', 'running', 'unhealthy', 'stopping', 'exited'] as const;
export const AppServerState = v.picklist(appServerStates);
export type AppServerState = v.InferOutput<typeof AppServerState>;

/** Keys of `serviceStatus` and `endpoints` (specification §2.4). */
export const serviceNames = ['appServerWebSocket', 'dashboard', 'api', 'agui', 'apiProxy'] as const;
export type ServiceName = (typeof serviceNames)[number];

/** The complete set of service states. Clients must tolerate others (specification §9). */
export const ServiceState = v.picklist([
  'allocated',
  'running',
  'disabled',
  'unavailable',
  'exited',
  'restartRequired',
  'external',
]);

export const ServiceStatus = v.object({
  state: v.pipe(ServiceState, v.description('allocated becomes running once the service was probed.')),
  url: v.nullable(v.string()),
  reason: v.pipe(v.nullable(v.string()), v.description('Why the service is missing or differs from the request.')),
});
export type ServiceStatus = v.InferOutput<typeof ServiceStatus>;

/** Requested place of a workspace. */
export const PlaceRequest = v.object({
  kind: v.pipe(
    v.picklist(['local', 'container', 'pod']),
    v.description('Place of the next start of the agent server; pod is experimental.'),
  ),
  image: v.optional(
    v.pipe(
      v.string(),
      v.regex(/^[\w][\w.:/@-]{0,254}$/, 'the name of an image'),
      v.description('Image of the container or pod; absent: the image of the settings.'),
    ),
  ),
  network: v.optional(
    v.pipe(v.picklist(['none', 'bridge']), v.description('Network of the container; absent: Place.Container.Network.')),
  ),
});
export type PlaceRequest = v.InferOutput<typeof PlaceRequest>;

/** Place of an agent server, in its record. */
export const PlaceInUse = v.object({
  kind: v.pipe(v.picklist(['container', 'pod']), v.description('Name of the place.')),
  engine: text('Unix socket of its engine, or address of the API server of its cluster.'),
  image: text('Image of its container.'),
  network: v.optional(v.pipe(v.picklist(['none', 'bridge']), v.description('Network of its container.'))),
  state: v.pipe(
    v.picklist(['ready', 'lost']),
    v.description('lost: the engine does not answer, and the agent server is not restarted.'),
  ),
});

/** `GET /v1/places`: a place, and whether it can run an agent server now. */
export const PlaceStatus = v.object({
  kind: v.pipe(v.picklist(['local', 'container', 'pod']), v.description('Name of the place.')),
  isDefault: v.pipe(v.boolean(), v.description('Whether `Place.Default` names it.')),
  engine: textOrNull('Unix socket of the engine, or address of the API server; null for local and without an engine.'),
  image: textOrNull('Image of its containers; null for local.'),
  version: textOrNull('Name and version of the engine; null while it does not answer.'),
  problem: textOrNull('Reason why the place cannot run an agent server now, with the next step; null: it can.'),
});
export type PlaceStatus = v.InferOutput<typeof PlaceStatus>;

/** A workspace's agent server (specification §2.4), with our additions after the specification's fields. */
export const AppServerRecord = v.object({
  workspacePath: text('Path as requested by this caller; in a list, as requested last.'),
  canonicalWorkspacePath: text('Real path: one per workspace, for every spelling.'),
  state: AppServerState,
  pid: v.nullable(processId),
  endpoints: v.pipe(
    v.record(v.string(), v.string()),
    v.description('URLs by service name; appServerWebSocket carries its token.'),
  ),
  serviceStatus: v.pipe(v.record(v.string(), ServiceStatus), v.description('Entries keyed by service name.')),
  serverVersion: v.nullable(v.string()),
  startedByHub: v.pipe(v.boolean(), v.description('Whether a Hub of this user manages the process.')),
  exitCode: v.pipe(v.nullable(v.number()), v.description('Null while it runs, or when the exit was not observed.')),
  lastError: v.nullable(v.string()),
  recentStderr: v.pipe(v.nullable(v.string()), v.description('The tail of standard error, tokens removed.')),
  displayName: text('Last segment of the canonical path.'),
  phase: text('The state with its child states, e.g. starting.probing; asleep: stopped until the next request.'),
  adopted: v.pipe(v.boolean(), v.description('True when an earlier Hub started this process.')),
  incarnation: v.pipe(v.number(), v.description('How often this Hub has started the workspace.')),
  restartCount: v.pipe(v.number(), v.description('Automatic restarts in the current window of the restart policy.')),
  nextAttemptAt: v.pipe(v.nullable(v.string()), v.description('When the supervisor will try again.')),
  lastStartedAt: v.nullable(v.string()),
  lastExitedAt: v.nullable(v.string()),
  trust: v.pipe(
    v.picklist(['trusted', 'restricted']),
    v.description('restricted: the next start ignores sensitive settings of the workspace; see oratorio trust.'),
  ),
  restrictedSettings: v.pipe(
    v.array(v.string()),
    v.description(
      'Sensitive settings in the config.json of the workspace that are ignored, e.g. EndPoint; empty when trusted.',
    ),
  ),
  health: v.pipe(
    HealthState,
    v.description('Whether turns and tools work, as the agent server reports it; unknown before the first turn.'),
  ),
  problems: v.pipe(v.array(Problem), v.description('Problems, the most urgent first; they outlive the Hub.')),
  lastTurn: v.pipe(v.nullable(LastTurn), v.description('End of the last turn; null when none is known.')),
  failuresInARow: v.pipe(v.number(), v.description('Turns that have failed since the last one that was completed.')),
  model: v.pipe(
    v.nullable(ModelInUse),
    v.description('Model of the next turn; null before the first start, and where an external agent chooses it.'),
  ),
  agent: v.pipe(
    v.nullable(AgentInUse),
    v.description(
      'Agent that does the turns; null before the first start. Without a running server its state is absent.',
    ),
  ),
  pendingApprovals: v.pipe(v.number(), v.description('Approvals that wait for a user.')),
  turnsResumed: v.pipe(
    v.number(),
    v.description(
      'Turns that began in an earlier agent server of the workspace: they run again, or resume at the next start.',
    ),
  ),
  costUsd: v.pipe(v.nullable(v.number()), v.description('Cost of all kept turns in US dollars; null: unknown.')),
  sandbox: v.pipe(
    v.nullable(SandboxState),
    v.description(
      'Sandbox of commands, as the running agent server reports it; null before the first command or turn.',
    ),
  ),
  configChanged: v.pipe(
    v.boolean(),
    v.description('True when the configuration differs from the one that the running server has read.'),
  ),
  incident: v.pipe(
    v.nullable(Incident),
    v.description('Report on a workspace that is down; null while its server runs, starts or ends.'),
  ),
  place: v.pipe(
    v.optional(PlaceInUse),
    v.description('Place of the agent server; absent for a process of this machine.'),
  ),
  page: v.pipe(
    v.nullable(v.string()),
    v.description(
      'Path of its page on the Hub, e.g. /w/k3v7q2xw5m4ajd4e/; null for a workspace the Hub does not know.',
    ),
  ),
});
export type AppServerRecord = v.InferOutput<typeof AppServerRecord>;

/** Sidecar request (specification §2.5). Its fields are checked further by the Hub: see `invalidProxySidecar`. */
export const ApiProxyRequest = v.object({
  enabled: v.pipe(v.optional(v.boolean(), true), v.description('False: no sidecar.')),
  binaryPath: v.optional(text('The executable; absolute, run as `<binaryPath> --config <configPath>`.')),
  configPath: v.optional(text('Its configuration file; absolute.')),
  endpoint: v.optional(text('Loopback http address under which it serves its model list.')),
  apiKey: v.optional(text('Key it asks for; kept on this machine and never shown.')),
});
export type ApiProxyRequest = v.InferOutput<typeof ApiProxyRequest>;

/**
 * `workspacePath` and `apiProxy` are `unknown` here on purpose: an invalid one has an error code of its own
 * (`workspaceNotFound`, `invalidProxySidecar`), so the Hub checks them after the body's shape.
 */
export const EnsureRequest = v.object({
  workspacePath: v.optional(v.unknown()),
  client: v.optional(v.nullable(v.object({ name: v.optional(v.string()), version: v.optional(v.string()) }))),
  startIfMissing: v.optional(v.boolean('true or false'), true),
  apiProxy: v.optional(v.unknown()),
  place: v.optional(PlaceRequest),
});
export const StopRequest = v.object({
  workspacePath: v.optional(v.unknown()),
  endTurns: v.optional(v.boolean('endTurns must be true or false.'), false),
});
export const RestartRequest = v.object({
  workspacePath: v.optional(v.unknown()),
  apiProxy: v.optional(v.unknown()),
  place: v.optional(PlaceRequest),
});

/** Body of a client's `ensure` (the documented shape, used by the SDK and OpenAPI). */
export const EnsureInput = v.object({
  workspacePath: text('Path of the workspace; absolute.'),
  client: v.optional(v.object({ name: v.string(), version: v.string() })),
  startIfMissing: v.pipe(v.optional(v.boolean(), true), v.description('False: inspect only, nothing is changed.')),
  apiProxy: v.optional(ApiProxyRequest),
  place: v.pipe(
    v.optional(PlaceRequest),
    v.description('Place of this and later starts of the workspace; a running server does not move.'),
  ),
});
export type EnsureInput = v.InferInput<typeof EnsureInput>;
export const StopInput = v.object({
  workspacePath: text('Path of the workspace; absolute.'),
  endTurns: v.optional(
    v.pipe(
      v.boolean(),
      v.description('True: cancels unfinished turns. Default: they are suspended, and resume with the next start.'),
    ),
  ),
});
export const RestartInput = v.object({
  workspacePath: text('Path of the workspace; absolute.'),
  apiProxy: v.optional(ApiProxyRequest),
  place: v.pipe(
    v.optional(PlaceRequest),
    v.description('Place of this and later starts. It is checked first: a refusal does not stop a running server.'),
  ),
});
export type RestartInput = v.InferInput<typeof RestartInput>;

/** Body of `POST /v1/workspaces`. */
export const WorkspaceInput = v.object({
  path: text('Directory, absolute or as ~/name. Created if it is missing.'),
  agent: v.optional(
    v.pipe(
      v.picklist(['oratorio', ...presetNames]),
      v.description('Agent that does the turns; absent: the agent in its settings.'),
    ),
  ),
});
/** Response of `POST /v1/workspaces`. */
export const MadeWorkspace = v.object({
  workspacePath: text('Absolute path of the workspace.'),
  created: v.pipe(v.boolean(), v.description('False if the directory already was a workspace.')),
});
export type MadeWorkspace = v.InferOutput<typeof MadeWorkspace>;

/** Body of `POST /v1/workspaces/agent`. */
export const AgentInput = v.object({
  workspacePath: text('Path of the workspace; absolute.'),
  agent: v.pipe(v.picklist(['oratorio', ...presetNames]), v.description('Agent that does its turns.')),
});
/** Response of `POST /v1/workspaces/agent`. */
export const AgentChosen = v.object({
  change: v.pipe(
    v.picklist(['unchanged', 'chosen', 'restricted']),
    v.description(
      'chosen: takes effect at the next start. restricted: takes effect once the user trusts the workspace.',
    ),
  ),
});
export type AgentChosen = v.InferOutput<typeof AgentChosen>;

/** A provider that a person can connect: `GET /v1/model/providers`. */
export const ModelProvider = v.object({
  name: v.pipe(v.picklist(knownProviderNames), v.description('Name for `POST /v1/model/login`.')),
  label: text('Name for people.'),
  keyPage: v.nullable(text('Page that issues keys, empty for an unknown one; null: it needs no key.')),
  model: v.nullable(text('Its usual model; null: the request must name one.')),
});
export type ModelProvider = v.InferOutput<typeof ModelProvider>;

/** Body of `POST /v1/model/login`: the answers to the questions of `oratorio login`. Its errors never quote the key. */
export const ModelLoginInput = v.object({
  provider: v.pipe(v.picklist(knownProviderNames), v.description('Provider, by the name that `oratorio login` takes.')),
  apiKey: v.pipe(
    v.optional(v.pipe(v.string('expected a text'), v.regex(/^(?!.*\$\{)\S{1,16384}$/, 'expected one word'))),
    v.description('API key; absent for a service without keys. It is stored and never returned.'),
  ),
  endPoint: v.optional(text('Base URL, http or https; only for the provider `other`.')),
  model: v.optional(text('Name of the model; absent: the current one, or else the default of the provider.')),
  isTested: v.pipe(v.optional(v.boolean(), true), v.description('False: saves without a test request.')),
});

/** Result of one small request to a model. */
export const ModelTest = v.object({
  outcome: v.pipe(
    v.picklist(['answered', 'refused', 'unknownModel', 'unreachable']),
    v.description('refused: the provider refused the key or the request. unreachable: there was no usable answer.'),
  ),
  model: text('Name of the model; empty when it is unknown.'),
  firstTokenMs: v.nullable(
    v.pipe(v.number(), v.description('Milliseconds to its first words; null without an answer.')),
  ),
  message: text('Failure in one sentence, or a warning about tool calls; otherwise empty.'),
  hint: v.nullable(text('Next step after a failure.')),
});
export type ModelTest = v.InferOutput<typeof ModelTest>;
/** Body of `POST /v1/model/test`. */
export const ModelTestInput = v.object({ workspacePath: text('Path of the workspace; absolute.') });
/** Answer of `POST /v1/model/login`. */
export const ModelLogin = v.object({
  file: v.nullable(text('File that was written, mode 0600; null: the test failed and nothing was changed.')),
  test: v.nullable(ModelTest),
});
export type ModelLogin = v.InferOutput<typeof ModelLogin>;

/** Answer of `GET /v1/trust`: the question that `oratorio trust` asks. */
export const TrustRequest = v.object({
  workspacePath: text('Canonical path of the workspace.'),
  trust: v.picklist(['trusted', 'restricted']),
  lines: v.pipe(
    v.array(v.string()),
    v.description('Sensitive settings of the workspace with secrets masked, then changes since the user last agreed.'),
  ),
  consequence: text('Sentence below the lines.'),
  revision: text('Changes with the settings and the files that they start.'),
});
export type TrustRequest = v.InferOutput<typeof TrustRequest>;
/** Body of `POST /v1/trust`. */
export const TrustAnswer = v.object({
  workspacePath: text('Path of the workspace; absolute.'),
  revision: text('Revision of the question that the user has read.'),
});

export const severities = ['info', 'success', 'warning', 'error'] as const;

const atMost = (field: string, characters: number) =>
  v.maxLength<string, number, string>(characters, `Notification ${field} is longer than ${characters} characters.`);

/** Notification request (specification §2.5). Only a title is required; severity is normalised, unknown ones become `info`. */
export const NotificationRequest = v.object({
  workspacePath: v.optional(v.nullable(v.string())),
  kind: v.optional(v.nullable(v.string())),
  title: v.pipe(v.string(), v.trim(), v.nonEmpty('Notification title is required.'), atMost('title', 1024)),
  body: v.optional(v.nullable(v.pipe(v.string(), atMost('body', 16_384)))),
  severity: v.optional(v.nullable(v.string())),
  source: v.optional(v.nullable(v.string())),
  actionUrl: v.optional(v.nullable(v.pipe(v.string(), atMost('actionUrl', 8192)))),
});
export type NotificationInput = v.InferInput<typeof NotificationRequest>;
export const NotificationResponse = v.object({ accepted: v.boolean() });
export const ShutdownResponse = v.object({ ok: v.boolean() });

/** The error object (specification §2.7). */
export const HubErrorBody = v.object({
  error: v.object({
    code: v.string(),
    message: v.string(),
    details: v.nullable(v.record(v.string(), v.unknown())),
  }),
});
export type HubErrorBody = v.InferOutput<typeof HubErrorBody>;
