import { type JsonSchema, toJsonSchemaDefs } from '@valibot/to-json-schema';
import * as v from 'valibot';
import {
  type AppServerRecord,
  type EnsureInput,
  type HostRecord,
  type HubErrorCode,
  type HubStatus,
  type HubThreadList,
  hubErrors,
  hubEventKinds,
  type InboxItem,
  type RestartInput,
  type TrustRequest,
} from '../protocol/index.ts';
import {
  errorCodesOf,
  type HubQueryParameter,
  type HubRoute,
  type HubRouteResponse,
  hubRequestSchemas,
  hubResponseSchemas,
  hubRoutes,
} from './route-table.ts';

/** A JSON object of the document; its shape is OpenAPI's and is checked by the tests. */
export type OpenApiObject = { readonly [key: string]: unknown };

const reference = (name: string) => ({ $ref: `#/components/schemas/${name}` });

type AnySchema = v.BaseSchema<unknown, unknown, v.BaseIssue<unknown>>;

/**
 * JSON Schemas (2020-12, as OpenAPI 3.1 wants) of named valibot schemas, with `$ref`s among them.
 *
 * @param typeMode `input`: as a client writes it; `output`: as it reads it
 */
export function jsonSchemas(definitions: Readonly<Record<string, AnySchema>>, typeMode: 'input' | 'output') {
  return toJsonSchemaDefs(definitions, {
    target: 'draft-2020-12',
    typeMode,
    // Transformations and checks of a pipe are not part of the shape.
    ignoreActions: ['trim', 'check', 'transform'],
    overrideRef: ({ referenceId }) => reference(referenceId).$ref,
    overrideSchema: ({ valibotSchema }): JsonSchema | undefined =>
      valibotSchema.type === 'date' ? { type: 'string', format: 'date-time' } : undefined,
  });
}

/** The record of one event kind: the four keys of specification §2.6 around that kind's data. */
function eventSchemas(): Record<string, AnySchema> {
  const entries = Object.entries(hubEventKinds).map(([kind, { meaning, data }]): [string, AnySchema] => [
    `Event.${kind}`,
    v.pipe(
      v.object({
        kind: v.literal(kind),
        at: v.pipe(v.string(), v.isoTimestamp()),
        workspacePath: v.nullable(v.string()),
        data,
      }),
      v.description(meaning),
    ),
  ]);
  return Object.fromEntries(entries);
}

function components(): OpenApiObject {
  const events = eventSchemas();
  const mapping = Object.keys(hubEventKinds).map((kind) => [kind, reference(`Event.${kind}`).$ref]);
  return {
    ...jsonSchemas(hubRequestSchemas, 'input'),
    ...jsonSchemas(hubResponseSchemas, 'output'),
    ...jsonSchemas(events, 'output'),
    HubEvent: {
      description: 'The JSON of each `data:` line. Kinds are open and payloads extensible: ignore unknown ones.',
      oneOf: Object.keys(events).map(reference),
      discriminator: { propertyName: 'kind', mapping: Object.fromEntries(mapping) },
    },
    SuperJsonInspectionRecord: {
      description: 'The JSON of each `data:` line, as superjson writes it: `meta` names the values that are dates.',
      type: 'object',
      properties: { json: reference('InspectionRecord'), meta: { type: 'object' } },
      required: ['json'],
    },
  };
}

const streams = {
  hub: {
    schema: 'HubEvent',
    description:
      'Server-Sent Events: `id`, `event` (the kind) and `data`. The first line is the comment `connected`; a comment is a heartbeat.',
  },
  inspection: {
    schema: 'SuperJsonInspectionRecord',
    description:
      'Server-Sent Events named `actor`, `transition`, `deadLetter`, `gone` and `dropped`; every known actor comes first.',
  },
} as const;

function success(response: HubRouteResponse, example: unknown): OpenApiObject {
  switch (response.kind) {
    case 'json': {
      const one = reference(response.schema);
      const schema = response.array ? { type: 'array', items: one } : one;
      return {
        description: 'Done.',
        content: { 'application/json': { schema, ...(example !== undefined && { example }) } },
      };
    }
    case 'document':
      return { description: response.description, content: { 'application/json': { schema: { type: 'object' } } } };
    case 'text':
      return { description: response.description, content: { [response.contentType]: { schema: { type: 'string' } } } };
    case 'events': {
      const { schema, description } = streams[response.of];
      return { description, content: { 'text/event-stream': { schema: reference(schema) } } };
    }
  }
}

/** `workspaceNotFound` is 400 or 404 (specification §7.1); every other code has one status. */
const statusesOf = (code: HubErrorCode): readonly number[] =>
  code === 'workspaceNotFound' ? [400, 404] : [hubErrors[code].status];

function failures(route: HubRoute): OpenApiObject {
  const codesByStatus = new Map<number, HubErrorCode[]>();
  for (const code of errorCodesOf(route)) {
    for (const status of statusesOf(code)) codesByStatus.set(status, [...(codesByStatus.get(status) ?? []), code]);
  }
  const responses = [...codesByStatus].map(([status, codes]) => [
    String(status),
    {
      description: codes.map((code) => `\`${code}\`: ${hubErrors[code].when}`).join('\n\n'),
      content: { 'application/json': { schema: reference('HubError') } },
    },
  ]);
  return Object.fromEntries(responses);
}

function parameter(
  place: 'path' | 'query' | 'header',
  { name, required, description, values }: HubQueryParameter,
): OpenApiObject {
  return { name, in: place, required, description, schema: { type: 'string', ...(values && { enum: values }) } };
}

function operation(operationId: string, route: HubRoute): OpenApiObject {
  const parameters = [
    ...(route.params ?? []).map((each) => parameter('path', each)),
    ...(route.query ?? []).map((each) => parameter('query', each)),
    ...(route.headers ?? []).map((each) => parameter('header', each)),
  ];
  const request = route.request;
  return {
    operationId,
    summary: route.summary,
    security: route.auth ? [{ hubToken: [] }] : [],
    ...(parameters.length > 0 && { parameters }),
    ...(request && {
      requestBody: {
        required: true,
        content: { 'application/json': { schema: reference(request), example: requestExamples[request] } },
      },
    }),
    responses: { '200': success(route.response, responseExamples[operationId]), ...failures(route) },
  };
}

const exampleToken = {
  ...{ tokenId: 'token_5f3a91c2d4e6b708', name: 'lead', scopes: ['list', 'read', 'prompt'], ownWorkspaces: [] },
  ...{ issuedAt: '2026-01-01T12:00:00.000Z', expiresAt: '2026-01-08T12:00:00.000Z' },
};
const examplePush = 'https://push.example.com/send/…';

const exampleAgent = {
  kind: 'oratorio',
  name: 'oratorio',
  version: '0.1.0',
  state: 'ready',
  approvals: 'asks',
} as const;

const exampleSandbox = { state: 'on', reason: 'bubblewrap 0.8.0, /usr/bin/bwrap' } as const;

/** Requests as a person would write them. None holds a secret: a key or token is a name in angle brackets. */
const requestExamples: Readonly<Record<keyof typeof hubRequestSchemas, unknown>> = {
  EnsureInput: {
    workspacePath: '/home/me/project',
    client: { name: 'my-editor', version: '1.0.0' },
    startIfMissing: true,
  } satisfies v.InferInput<typeof EnsureInput>,
  StopInput: { workspacePath: '/home/me/project' },
  RestartInput: { workspacePath: '/home/me/project' } satisfies v.InferInput<typeof RestartInput>,
  InboxAnswer: { decision: 'accept' },
  ThreadChange: { displayName: 'Fix the tests' },
  TokenRequest: { name: 'lead', scopes: ['list', 'read', 'prompt'] },
  TokenRevocation: { tokenId: 'token_5f3a91c2d4e6b708' },
  DelegatedRequest: { do: 'prompt', workspaceId: 'k3v7q2xw5m4ajd4e', text: 'Run the tests.' },
  PushSubscribeInput: { endpoint: examplePush, keys: { p256dh: `B${'A'.repeat(86)}`, auth: 'A'.repeat(22) } },
  PushUnsubscribeInput: { endpoint: examplePush },
  WorkspaceInput: { path: '/home/me/project', agent: 'opencode' },
  AgentInput: { workspacePath: '/home/me/project', agent: 'opencode' },
  ModelLoginInput: { provider: 'openai', apiKey: '<key>', model: 'gpt-6-sol' },
  ModelTestInput: { workspacePath: '/home/me/project' },
  TrustAnswer: { workspacePath: '/home/me/project', revision: 'Yk1…' },
  HostInput: { name: 'build', ssh: 'ssh://me@build-box' },
  HostActionInput: {},
  MoveInput: {
    threadId: 'thread_20260101_abc123',
    from: { host: null, workspacePath: '/home/me/project' },
    to: { host: 'build', workspacePath: '/srv/project' },
  },
  MoveStepInput: {
    ...{ workspacePath: '/srv/project', step: 'state', moveId: 'move_5f3a91c2d4e6b708' },
    threadId: 'thread_20260101_abc123',
  },
  NotificationRequest: { title: 'Turn completed', body: 'All tests pass.', kind: 'turnCompleted', severity: 'success' },
  ApiProxyRequest: {
    enabled: true,
    binaryPath: '/usr/local/bin/model-proxy',
    configPath: '/home/me/.config/model-proxy.yaml',
    endpoint: 'http://127.0.0.1:4000/v1',
    apiKey: '<PROXY_API_KEY>',
  },
};

const startedAt = '2026-01-01T12:00:00.000Z';
const exampleStatus: v.InferInput<typeof HubStatus> = {
  hubVersion: '0.1.0',
  pid: 4242,
  startedAt,
  statePath: '/home/me/.oratorio/hub',
  apiBaseUrl: 'http://127.0.0.1:41234',
  capabilities: { appServerManagement: true, portManagement: true, events: true, notifications: true, tray: false },
};
const exampleRecord: v.InferInput<typeof AppServerRecord> = {
  workspacePath: '/home/me/project',
  canonicalWorkspacePath: '/home/me/project',
  state: 'running',
  pid: 4343,
  endpoints: { appServerWebSocket: 'ws://127.0.0.1:41235/ws?token=<APPSERVER_TOKEN>' },
  serviceStatus: {
    appServerWebSocket: { state: 'running', url: 'ws://127.0.0.1:41235/ws', reason: null },
    apiProxy: { state: 'disabled', url: null, reason: 'No sidecar was requested.' },
  },
  serverVersion: '0.1.0',
  startedByHub: true,
  exitCode: null,
  lastError: null,
  recentStderr: null,
  displayName: 'project',
  phase: 'running',
  adopted: false,
  incarnation: 1,
  restartCount: 0,
  nextAttemptAt: null,
  lastStartedAt: startedAt,
  lastExitedAt: null,
  trust: 'trusted',
  restrictedSettings: [],
  health: 'healthy',
  problems: [],
  lastTurn: { status: 'completed', endedAt: startedAt, code: null, message: null },
  failuresInARow: 0,
  model: { name: 'gpt-x', provider: 'openai', host: 'api.openai.com' },
  agent: exampleAgent,
  pendingApprovals: 0,
  turnsResumed: 0,
  costUsd: 0.12,
  sandbox: exampleSandbox,
  configChanged: false,
  incident: null,
  page: '/w/k3v7q2xw5m4ajd4e/',
};
const exampleTrust: TrustRequest = {
  ...{ workspacePath: '/home/me/project', trust: 'restricted', lines: ['  EndPoint  "https://models.example/v1"'] },
  consequence: 'These settings can start programs, open listeners and send data elsewhere, with your rights.',
  revision: 'Yk1…',
};
const exampleItem: v.InferInput<typeof InboxItem> = {
  kind: 'approval',
  workspaceId: 'k3v7q2xw5m4ajd4e',
  workspacePath: '/home/me/project',
  displayName: 'project',
  actionUrl: '/w/k3v7q2xw5m4ajd4e/#/chat/thread_1',
  state: 'open',
  request: {
    ...{ threadId: 'thread_1', turnId: 'turn_001', itemId: 'item_3', requestId: 'approval_1', callId: 'call_1' },
    ...{ tool: 'Exec', approvalType: 'shell', operation: 'run', target: 'npm test', scopeKey: 'run:npm test' },
    ...{ createdAt: startedAt, expiresAt: '2026-01-01T12:05:00.000Z' },
  },
};
const exampleHost: HostRecord = {
  ...{ name: 'build', ssh: 'ssh://me@build-box', program: 'oratorio' },
  ...{ state: 'connected', phase: 'connected.current', reason: null, next: null, version: '0.1.0' },
  ...{ workspaces: 3, waiting: 1, since: startedAt, asOf: startedAt },
};
const exampleSum = {
  host: null,
  workspaces: 1,
  trouble: 0,
  ready: 1,
  asleep: 0,
  stopped: 0,
  waiting: 0,
  costUsd: 0.12,
};
const exampleWhere = { host: 'build', asOf: null };
/** By operation. The tests hold every example against its schema. */
const exampleMove = {
  ...{ moveId: 'move_5f3a91c2d4e6b708', threadId: 'thread_20260101_abc123', state: 'sending', reason: null },
  from: { host: null, workspacePath: '/home/me/project' },
  to: { host: 'build', workspacePath: '/srv/project' },
  ...{ sentBytes: 393_216, totalBytes: 1_200_000, entries: 200, startedAt },
};

const responseExamples: Readonly<Record<string, unknown>> = {
  listMoves: [exampleMove],
  startMove: exampleMove,
  cancelMove: exampleMove,
  stepMove: { state: 'receiving', received: { conversation: 4_096, files: 0 } },
  getStatus: exampleStatus,
  prove: { proof: '3q2-7wAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA', use: 'token', instance: 'c2VydmVy' },
  shutDown: { ok: true },
  listPlaces: [
    { kind: 'local', isDefault: true, engine: null, image: null, version: null, problem: null },
    {
      ...{ kind: 'container', isDefault: false, engine: '/run/user/1000/podman/podman.sock' },
      ...{ image: 'buildpack-deps:bookworm-scm', version: 'podman 4.3.1, rootless', problem: null },
    },
  ],
  listAppServers: [exampleRecord],
  ensureAppServer: exampleRecord,
  getAppServer: exampleRecord,
  stopAppServer: { ...exampleRecord, state: 'stopped', phase: 'stopped', pid: null, endpoints: {}, serviceStatus: {} },
  restartAppServer: { ...exampleRecord, incarnation: 2 },
  listExits: [
    {
      ...{ at: '2026-01-01T12:05:00.000Z', pid: 4343, livedMs: 1_600, exitCode: null, signal: 'SIGKILL' },
      ...{ stopReason: null, error: 'The agent server was ended by SIGKILL.', lastLine: 'listening' },
      log: { file: '/home/me/.oratorio/hub/logs/project/stderr.log', offset: 5_120 },
    },
  ],
  listInbox: [exampleItem],
  listInboxHistory: [
    {
      at: '2026-01-01T12:00:09.000Z',
      ...{ workspaceId: 'k3v7q2xw5m4ajd4e', workspacePath: '/home/me/project', requestId: 'approval_1' },
      ...{ threadId: 'thread_1', tool: 'Exec', operation: 'run', target: 'npm test' },
      ...{ decision: 'accept', decidedBy: 'page', reason: 'answered', token: 'page', remoteAddress: '127.0.0.1' },
    },
  ],
  answerInbox: { decision: 'accept', decidedBy: 'page', decidedAt: '2026-01-01T12:00:09.000Z', reason: 'answered' },
  getPush: { publicKey: `B${'A'.repeat(86)}`, subscriptions: 1 },
  subscribePush: { id: 'q2w8Zr0c1LkP' },
  unsubscribePush: { removed: true },
  makeWorkspace: { workspacePath: '/home/me/project', created: true },
  chooseAgent: { change: 'chosen' },
  listProviders: [
    { name: 'openai', label: 'OpenAI', keyPage: 'https://platform.openai.com/api-keys', model: 'gpt-6-sol' },
  ],
  logIn: {
    file: '/home/me/.oratorio/config.json',
    test: { outcome: 'answered', model: 'gpt-6-sol', firstTokenMs: 412, message: '', hint: null },
  },
  testModel: {
    outcome: 'refused',
    model: 'gpt-6-sol',
    firstTokenMs: null,
    message: 'The provider refuses the key (401).',
    hint: 'The key was refused: check that it is complete, not revoked, and for this provider.',
  },
  askTrust: exampleTrust,
  answerTrust: { ...exampleTrust, trust: 'trusted' },
  listThreads: {
    threads: [
      {
        ...{ workspaceId: 'k3v7q2xw5m4ajd4e', threadId: 'thread_1', name: 'Fix the tests', status: 'active' },
        ...{ activity: 'idle', channel: 'page', createdAt: startedAt, lastActiveAt: '2026-01-01T12:05:00.000Z' },
        lastTurn: { status: 'completed', at: '2026-01-01T12:05:00.000Z' },
        agent: null,
        work: {
          totalMs: 16_000,
          toolMs: 8_300,
          waitMs: 3_800,
          pauseMs: 0,
          costUsd: 0.0119,
          unpricedCount: 0,
          totalTokens: 4_200,
        },
        fork: null,
        actionUrl: '/w/k3v7q2xw5m4ajd4e/#/chat/thread_1',
      },
    ],
    hasMore: false,
    workspaces: [
      {
        ...{ workspaceId: 'k3v7q2xw5m4ajd4e', workspacePath: '/home/me/project', displayName: 'project' },
        ...{ state: 'running', stateWord: 'ready', problem: null },
      },
    ],
  } satisfies HubThreadList,
  changeThread: { workspaceId: 'k3v7q2xw5m4ajd4e', threadId: 'thread_1' },
  listHosts: [exampleHost],
  addHost: exampleHost,
  changeHost: exampleHost,
  listFleet: {
    appServers: [{ ...exampleRecord, ...exampleWhere }],
    hosts: [exampleHost],
    sums: [exampleSum],
    next: null,
  },
  listFleetInbox: [{ ...exampleItem, ...exampleWhere }],
  answerFleetInbox: { decision: 'accept', decidedBy: 'page', decidedAt: startedAt, reason: 'answered' },
  listFleetThreads: { threads: [], hasMore: false, workspaces: [], missing: [] },
  issueToken: { ...exampleToken, token: 'scp.…' },
  listTokens: [exampleToken],
  revokeToken: exampleToken,
  delegate: { workspaceId: 'k3v7q2xw5m4ajd4e', threadId: 'thread_1' },
  requestNotification: { accepted: true },
  recentEvents: [{ id: '5f3a91c2-17', kind: 'hub.started', at: startedAt, workspacePath: null, data: { pid: 4242 } }],
  getPage: {
    kind: 'hub',
    version: '0.1.0',
    views: ['now', 'overview', 'threads', 'inbox', 'actors', 'events', 'logs'],
  },
  getDashboardLink: { url: 'http://127.0.0.1:41236/DashBoard#token=<DASHBOARD_TOKEN>' },
};

/**
 * The Hub API as an OpenAPI 3.1 document, made from the route table and the schemas of the wire.
 *
 * @param version version of the Hub
 * @param baseUrl where this Hub serves, e.g. `http://127.0.0.1:41234`
 */
export function hubOpenApi(version: string, baseUrl: string): OpenApiObject {
  const paths: Record<string, Record<string, OpenApiObject>> = {};
  for (const [operationId, route] of Object.entries(hubRoutes)) {
    paths[route.path] = { ...paths[route.path], [route.method.toLowerCase()]: operation(operationId, route) };
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Oratorio Hub',
      version,
      description: 'A per-user, loopback-only supervisor of one agent server per workspace.',
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: baseUrl }],
    paths,
    components: {
      securitySchemes: {
        hubToken: {
          type: 'http',
          scheme: 'bearer',
          description: 'The `token` of `hub.lock`, which only its user can read.',
        },
      },
      schemas: components(),
    },
  };
}
