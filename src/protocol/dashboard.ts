/**
 * The Dashboard API of an agent server (specification §4.3), whose shapes the specification leaves open. Errors are
 * `{error: {code, message, details}}`, as the Hub's. Paths: see `dashboardPaths`.
 */
import * as v from 'valibot';
import { pageViews } from './browser.ts';
import { WorkspaceCondition } from './health.ts';
import { TraceEvent, TraceSession, TraceTotals } from './traces.ts';

/** First answer to the page, by the Hub (`GET /v1/page`) or an agent server (`GET /dashboard/api/page`). */
export const PageInfo = v.object({
  kind: v.picklist(['hub', 'workspace']),
  version: v.string(),
  /** The workspace; absent for the Hub. */
  workspacePath: v.optional(v.string()),
  /** Nothing can be changed here, and why. */
  readOnly: v.optional(v.string()),
  views: v.array(v.picklist(pageViews)),
});
export type PageInfo = v.InferOutput<typeof PageInfo>;

/** `GET /dashboard/api/auth`, open to everybody: how to get in. */
export const AuthMethods = v.object({ methods: v.array(v.picklist(['none', 'token', 'password'])) });
export type AuthMethods = v.InferOutput<typeof AuthMethods>;
/** `POST /dashboard/api/login`. */
export const LoginInput = v.object({ username: v.string(), password: v.string() });
export const LoginResult = v.object({ token: v.string(), expiresAt: v.string() });
export type LoginResult = v.InferOutput<typeof LoginResult>;

/** `POST /DashBoard/api/exchange`: proves to hold a token of an earlier start, `proof` being the MAC of `exchangeMessage`. */
export const ExchangeInput = v.object({ key: v.string(), nonce: v.string(), proof: v.string() });
/** The token of this start. */
export const ExchangeResult = v.object({ token: v.string() });
export type ExchangeResult = v.InferOutput<typeof ExchangeResult>;

/** State of one part of the runtime: `threads`, `traces`, `automations`, `mcp`, `api`, `agui`, `dashboard`, `provider` … */
export const ModuleState = v.object({
  name: v.string(),
  /** Open: `running`, `disabled`, `degraded`, `failed`. */
  state: v.string(),
  /** For people; absent when all is well. */
  reason: v.optional(v.string()),
  url: v.optional(v.string()),
  facts: v.optional(v.record(v.string(), v.union([v.string(), v.number(), v.boolean()]))),
});
export type ModuleState = v.InferOutput<typeof ModuleState>;

/** A trace event in a list: its texts may be shortened, `bytes` is the length of the whole. */
export const EventSummary = v.object({
  ...TraceEvent.entries,
  /** Whether a text of `data` was shortened: the whole event is at `…/events/{id}`. */
  isShortened: v.optional(v.literal(true)),
});
export type EventSummary = v.InferOutput<typeof EventSummary>;

export const DashboardSession = v.object({
  ...TraceSession.entries,
  /** From its first event to its last, in milliseconds. */
  durationMs: v.number(),
  totalTokens: v.number(),
  isRunning: v.boolean(),
});
export type DashboardSession = v.InferOutput<typeof DashboardSession>;

/** `GET /DashBoard/api/summary`. */
export const DashboardSummary = v.object({
  kind: v.literal('workspace'),
  workspacePath: v.string(),
  version: v.string(),
  pid: v.number(),
  startedAt: v.string(),
  provider: v.string(),
  model: v.string(),
  ...TraceTotals.entries,
  totalTokens: v.number(),
  /** Spent on models today by all workspaces of the user, in US dollars; absent when it is unknown. */
  spentTodayUsd: v.optional(v.number()),
  activeTurns: v.number(),
  pendingApprovals: v.number(),
  /** Traces that were lost because the disk did not take them. */
  droppedEvents: v.number(),
  /** Newest first, at most 20. */
  recentEvents: v.array(EventSummary),
  modules: v.array(ModuleState),
  /** Whether turns and tools work; absent where no agent server runs. */
  condition: v.optional(WorkspaceCondition),
  trust: v.picklist(['trusted', 'restricted']),
  /** Sensitive settings of the workspace's file that are ignored; empty when it is trusted. */
  restrictedSettings: v.array(v.string()),
});
export type DashboardSummary = v.InferOutput<typeof DashboardSummary>;

/**
 * `GET /DashBoard/api/sessions?limit=&cursor=&q=&status=`: most recently active first. `q` is looked for in names, first
 * inputs and keys; `status` is `running`, `failed` (has errors) or absent.
 */
export const SessionPage = v.object({
  sessions: v.array(DashboardSession),
  /** Send it as `cursor` to continue; absent at the end. */
  next: v.optional(v.string()),
});
export type SessionPage = v.InferOutput<typeof SessionPage>;

/** `GET /dashboard/api/texts?q=&limit=`: messages and answers of all conversations that contain these words, newest first. */
export const FoundTexts = v.object({
  texts: v.array(
    v.object({
      threadId: v.string(),
      turnId: v.string(),
      /** Name that a person or the server has given to the conversation. */
      displayName: v.optional(v.string()),
      /** One line around the first of the words. */
      excerpt: v.string(),
    }),
  ),
});
export type FoundTexts = v.InferOutput<typeof FoundTexts>;
export type FoundText = FoundTexts['texts'][number];

/**
 * `GET /DashBoard/api/sessions/{sessionKey}/events?after=&before=&limit=&types=&tool=&turn=&q=&order=&bodies=`: oldest first, or
 * with `order=desc` newest first. `bodies=none` (default `short`, `full`) leaves the texts out.
 */
export const EventPage = v.object({
  session: v.optional(DashboardSession),
  events: v.array(EventSummary),
  /** Send it as `after` (or `before`, newest first) to continue; absent at the end. */
  next: v.optional(v.number()),
});
export type EventPage = v.InferOutput<typeof EventPage>;

/** `GET /dashboard/api/events?before=&limit=`: events of all sessions, newest first. */
export const RecentEvents = v.object({
  events: v.array(EventSummary),
  /** Send it as `before` for older ones; absent at the end. */
  next: v.optional(v.number()),
});
export type RecentEvents = v.InferOutput<typeof RecentEvents>;

export const SessionDeleted = v.object({ deleted: v.boolean(), sessionKey: v.string() });
/** Sessions with stored turn runs. */
export const SessionsCleared = v.object({ deleted: v.number(), kept: v.array(v.string()) });

/** `GET /dashboard/api/config`: the values behind the schema. Secrets are `{set: boolean}`, never their text. */
export const ConfigView = v.object({
  /** Revision of the workspace's own file; give it back to write (`PUT`, header `if-match`). */
  revision: v.string(),
  path: v.string(),
  /** Why it cannot be written; absent when it can. */
  readOnly: v.optional(v.string()),
  /** Effective settings: all files merged, defaults filled in. */
  effective: v.record(v.string(), v.unknown()),
  /** Content of the workspace's own file. */
  workspace: v.record(v.string(), v.unknown()),
  /** Content of the user's file. */
  user: v.record(v.string(), v.unknown()),
  warnings: v.array(v.string()),
  /** `file:line` of each set value that a form does not change, by key path. */
  places: v.optional(v.record(v.string(), v.string())),
});
export type ConfigView = v.InferOutput<typeof ConfigView>;
/** `PUT /dashboard/api/config`: key paths (`Api.Port`) with their new value; null takes the setting out of the file. */
export const ConfigChange = v.object({ set: v.record(v.string(), v.unknown()) });
export const ConfigChanged = v.object({
  revision: v.string(),
  /** Changed settings that hold only after a restart. */
  restartNeededFor: v.array(v.string()),
});

/** One line of `GET /dashboard/api/logs?after=&limit=`. */
export const LogLine = v.object({
  seq: v.number(),
  at: v.string(),
  level: v.string(),
  name: v.string(),
  msg: v.string(),
  fields: v.record(v.string(), v.unknown()),
});
export type LogLine = v.InferOutput<typeof LogLine>;
export const LogPage = v.object({ lines: v.array(LogLine), dropped: v.number() });
export type LogPage = v.InferOutput<typeof LogPage>;
