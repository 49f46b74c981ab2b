/**
 * The Hub's answers as a client reads them: fields that the specification promises are required, all others are optional,
 * unknown fields stay, and words of open lists (states, services) may be new ones (specification §9).
 */
import * as v from 'valibot';
import {
  type AgentInUse,
  type ApprovalDecision,
  type AppServerState,
  type HealthState,
  type HostRecord,
  HubLock,
  type LastTurn,
  QuestionForm,
  type SandboxState,
  type ServiceStatus,
} from '../protocol/index.ts';

/** A word of a list that may grow. */
type Open<T extends string> = T | (string & Record<never, never>);

const text = v.string();
const nullableText = v.optional(v.nullable(v.string()), null);
const nullableNumber = v.optional(v.nullable(v.number()), null);
const open = <T extends string>() => v.custom<Open<T>>((value) => typeof value === 'string', 'Expected string');

export const LockAnswer = v.looseObject({ ...HubLock.entries, startedAt: text });

const ProblemAnswer = v.looseObject({
  code: text,
  what: text,
  where: nullableText,
  next: nullableText,
  remedy: v.optional(v.looseObject({ act: text })),
});

export const StatusAnswer = v.looseObject({
  hubVersion: text,
  pid: v.number(),
  startedAt: text,
  statePath: text,
  apiBaseUrl: text,
  capabilities: v.looseObject({
    appServerManagement: v.optional(v.boolean(), false),
    portManagement: v.optional(v.boolean(), false),
    events: v.optional(v.boolean(), false),
    notifications: v.optional(v.boolean(), false),
    tray: v.optional(v.boolean(), false),
  }),
  problems: v.optional(v.array(ProblemAnswer), []),
});
export type StatusAnswer = v.InferOutput<typeof StatusAnswer>;

const ServiceAnswer = v.looseObject({
  state: open<ServiceStatus['state']>(),
  url: nullableText,
  reason: nullableText,
});

const LastTurnAnswer = v.looseObject({
  status: open<LastTurn['status']>(),
  endedAt: text,
  code: nullableText,
  message: nullableText,
});
const ModelAnswer = v.looseObject({ name: text, provider: text, host: nullableText });

const AgentAnswer = v.looseObject({
  kind: open<AgentInUse['kind']>(),
  name: text,
  version: nullableText,
  state: text,
  approvals: open<AgentInUse['approvals']>(),
});

export const ExitAnswer = v.looseObject({
  at: text,
  pid: nullableNumber,
  livedMs: nullableNumber,
  exitCode: nullableNumber,
  signal: nullableText,
  stopReason: nullableText,
  error: nullableText,
  lastLine: nullableText,
  log: v.optional(v.nullable(v.looseObject({ file: text, offset: v.number() })), null),
});
export type ExitAnswer = v.InferOutput<typeof ExitAnswer>;
export const ExitListAnswer = v.array(ExitAnswer);

const IncidentAnswer = v.looseObject({
  what: text,
  note: nullableText,
  exits: v.optional(v.array(ExitAnswer), []),
  remedies: v.optional(v.array(v.looseObject({ act: text })), []),
});

const SandboxAnswer = v.looseObject({ state: open<SandboxState['state']>(), reason: v.optional(text, '') });

/** Place of an agent server that is not a process of this machine. */
const PlaceAnswer = v.looseObject({
  kind: open<'container' | 'pod'>(),
  engine: nullableText,
  image: nullableText,
  network: nullableText,
  state: v.optional(open<'ready' | 'lost'>(), 'ready'),
});

export const RecordAnswer = v.pipe(
  v.looseObject({
    workspacePath: text,
    canonicalWorkspacePath: text,
    state: open<AppServerState>(),
    pid: nullableNumber,
    endpoints: v.optional(v.record(v.string(), v.string()), {}),
    serviceStatus: v.optional(v.record(v.string(), ServiceAnswer), {}),
    serverVersion: nullableText,
    startedByHub: v.optional(v.boolean(), false),
    exitCode: nullableNumber,
    lastError: nullableText,
    recentStderr: nullableText,
    displayName: v.optional(text),
    phase: v.optional(text),
    adopted: v.optional(v.boolean(), false),
    incarnation: v.optional(v.number(), 0),
    restartCount: v.optional(v.number(), 0),
    nextAttemptAt: nullableText,
    lastStartedAt: nullableText,
    lastExitedAt: nullableText,
    trust: v.optional(open<'trusted' | 'restricted'>()),
    restrictedSettings: v.optional(v.array(text), []),
    health: v.optional(open<HealthState>(), 'unknown'),
    problems: v.optional(v.array(ProblemAnswer), []),
    lastTurn: v.optional(v.nullable(LastTurnAnswer), null),
    failuresInARow: v.optional(v.number(), 0),
    model: v.optional(v.nullable(ModelAnswer), null),
    agent: v.optional(v.nullable(AgentAnswer), null),
    pendingApprovals: v.optional(v.number(), 0),
    turnsResumed: v.optional(v.number(), 0),
    costUsd: nullableNumber,
    sandbox: v.optional(v.nullable(SandboxAnswer), null),
    configChanged: v.optional(v.boolean(), false),
    incident: v.optional(v.nullable(IncidentAnswer), null),
    place: v.optional(PlaceAnswer),
    page: nullableText,
  }),
  v.transform((record) => ({
    ...record,
    displayName: record.displayName ?? record.canonicalWorkspacePath.split(/[\\/]/).findLast(Boolean) ?? '/',
    phase: record.phase ?? String(record.state),
  })),
);
export type RecordAnswer = v.InferOutput<typeof RecordAnswer>;

export const PlaceListAnswer = v.array(
  v.looseObject({
    kind: open<'local' | 'container' | 'pod'>(),
    isDefault: v.optional(v.boolean(), false),
    engine: nullableText,
    image: nullableText,
    version: nullableText,
    problem: nullableText,
  }),
);
export type PlaceStatusAnswer = v.InferOutput<typeof PlaceListAnswer>[number];

/** Greatest length of a list. A hostile Hub could send some 300,000 rows in one answer, which take minutes to check. */
const maxRows = 20_000;

/** List whose length is checked before its rows. */
const rowsOf = <T extends v.GenericSchema>(row: T) =>
  v.pipe(v.array(v.unknown()), v.maxLength(maxRows, `Expected at most ${maxRows} rows`), v.array(row));

export const RecordListAnswer = rowsOf(RecordAnswer);

export const HostAnswer = v.looseObject({
  name: text,
  ssh: text,
  program: v.optional(text, 'oratorio'),
  state: open<HostRecord['state']>(),
  phase: v.optional(text, ''),
  reason: nullableText,
  next: nullableText,
  version: nullableText,
  workspaces: v.optional(v.number(), 0),
  waiting: v.optional(v.number(), 0),
  since: v.optional(text, ''),
  asOf: nullableText,
});
export type HostAnswer = v.InferOutput<typeof HostAnswer>;
export const HostListAnswer = v.array(HostAnswer);

const where = v.looseObject({ host: nullableText, asOf: nullableText });
export const FleetListAnswer = v.looseObject({
  appServers: v.array(v.intersect([RecordAnswer, where])),
  hosts: HostListAnswer,
  next: nullableText,
});
export type FleetListAnswer = v.InferOutput<typeof FleetListAnswer>;

const RequestAnswer = v.looseObject({
  requestId: text,
  threadId: text,
  tool: v.optional(text, ''),
  operation: v.optional(text, ''),
  target: text,
  workingDirectory: v.optional(text),
  covers: v.optional(text),
  reason: v.optional(text),
  diff: v.optional(text),
  proposedRule: v.optional(v.looseObject({ tool: text, prefix: v.array(text) })),
  question: v.fallback(v.optional(QuestionForm), undefined),
  createdAt: v.optional(text, ''),
  expiresAt: v.optional(text, ''),
});
const InboxItemAnswer = v.looseObject({
  /** `approval` when the Hub is of an earlier version. */
  kind: v.optional(open<'approval' | 'question' | 'quota' | 'resume'>(), 'approval'),
  workspaceId: text,
  workspacePath: text,
  displayName: text,
  actionUrl: text,
  state: v.optional(open<'open' | 'deciding' | 'unconfirmed' | 'suspended'>(), 'open'),
  request: RequestAnswer,
});
export type InboxItemAnswer = v.InferOutput<typeof InboxItemAnswer>;
export const InboxListAnswer = rowsOf(InboxItemAnswer);
export const FleetInboxListAnswer = v.array(v.looseObject({ ...InboxItemAnswer.entries, ...where.entries }));
export const InboxDecisionAnswer = v.looseObject({
  decision: open<ApprovalDecision>(),
  decidedBy: text,
  decidedAt: v.optional(text),
});
const InboxHistoryAnswer = v.looseObject({
  at: text,
  workspaceId: text,
  workspacePath: text,
  requestId: text,
  threadId: text,
  tool: text,
  operation: text,
  target: text,
  decision: open<ApprovalDecision>(),
  decidedBy: text,
  reason: text,
  token: nullableText,
  remoteAddress: nullableText,
});
export type InboxHistoryAnswer = v.InferOutput<typeof InboxHistoryAnswer>;
export const InboxHistoryListAnswer = v.array(InboxHistoryAnswer);

export const ScopedTokenAnswer = v.looseObject({
  tokenId: text,
  name: text,
  scopes: v.array(text),
  issuedAt: text,
  expiresAt: text,
  ownWorkspaces: v.array(text),
});
export type ScopedTokenAnswer = v.InferOutput<typeof ScopedTokenAnswer>;
export const ScopedTokenListAnswer = v.array(ScopedTokenAnswer);
export const IssuedTokenAnswer = v.looseObject({ ...ScopedTokenAnswer.entries, token: text });
export type IssuedTokenAnswer = v.InferOutput<typeof IssuedTokenAnswer>;

export type InboxDecisionAnswer = v.InferOutput<typeof InboxDecisionAnswer>;

const HubThreadAnswer = v.looseObject({
  workspaceId: text,
  threadId: text,
  name: nullableText,
  status: text,
  activity: v.optional(open<'idle' | 'running' | 'waiting'>(), 'idle'),
  channel: v.optional(nullableText, null),
  createdAt: v.optional(text, ''),
  lastActiveAt: text,
  lastTurn: v.optional(v.nullable(v.looseObject({ status: text, at: text })), null),
  fork: v.optional(
    v.nullable(
      v.looseObject({
        forkedFromThreadId: text,
        directory: text,
        race: v.optional(
          v.nullable(
            v.looseObject({
              ...{ number: v.number(), state: text },
              agent: v.optional(text),
              failure: v.optional(v.looseObject({ code: text })),
            }),
          ),
          null,
        ),
      }),
    ),
    null,
  ),
  actionUrl: text,
});
export const HubThreadListAnswer = v.looseObject({
  threads: rowsOf(HubThreadAnswer),
  hasMore: v.boolean(),
  workspaces: v.array(
    v.looseObject({
      workspaceId: text,
      workspacePath: text,
      displayName: text,
      state: text,
      stateWord: v.optional(text, ''),
      problem: v.optional(nullableText, null),
    }),
  ),
});
export type HubThreadListAnswer = v.InferOutput<typeof HubThreadListAnswer>;

/** An event record (specification §2.6); `workspacePath` and `data` may be absent from another Hub's. */
export const EventAnswer = v.looseObject({
  kind: text,
  at: text,
  workspacePath: nullableText,
  data: v.optional(v.nullable(v.record(v.string(), v.unknown())), null),
  host: nullableText,
});

export const ErrorAnswer = v.looseObject({
  error: v.looseObject({
    code: text,
    message: text,
    details: v.optional(v.nullable(v.record(v.string(), v.unknown())), null),
  }),
});
