import * as v from 'valibot';
import { HealthReport, RememberedHealth } from './health.ts';

const Listener = v.object({
  host: v.string(),
  port: v.pipe(v.number(), v.integer(), v.minValue(0), v.maxValue(65535)),
});

/** Input of a managed agent server from the Hub on standard input. Secrets travel here and nowhere else. */
export const LaunchDocument = v.object({
  version: v.literal(1),
  workspacePath: v.string(),
  /** Names this start of this workspace's server; also `ORATORIO_INCARNATION` in the environment. */
  incarnation: v.string(),
  adoptionProof: v.string(),
  /** `<home>/hub`. */
  hubStatePath: v.string(),
  /** May only post notifications for this workspace. Agent servers up to 0.1.0 use it. */
  notificationToken: v.string(),
  services: v.object({
    appServerWebSocket: v.object({ ...Listener.entries, token: v.string() }),
    dashboard: v.optional(Listener),
    api: v.optional(Listener),
    agui: v.optional(v.object({ ...Listener.entries, path: v.string() })),
  }),
  /** The apiProxy sidecar, when one runs: it takes the place of the configured upstream. */
  upstream: v.optional(v.object({ endpoint: v.string(), apiKey: v.string() })),
  /** Failures of an earlier start with the same settings: they are expected to continue. */
  health: v.optional(RememberedHealth),
  /** Resolved settings, including keys, for a place without access to the home. Absent: the agent server reads the files. */
  settings: v.optional(v.record(v.string(), v.unknown())),
  /** Environment variables that the settings pass on, for a place without access to the environment. */
  environment: v.optional(v.record(v.string(), v.string())),
  /** `unix`: each listener also has a socket in the state directory of the workspace. */
  listen: v.optional(v.picklist(['tcp', 'unix'])),
  /**
   * The Hub listens at the ports of a workspace that sleeps. `true`: it does, until the agent server listens there, too; `later`: it will,
   * when the agent server falls asleep. Absent: no other process may listen there.
   */
  sharesPorts: v.optional(v.union([v.literal(true), v.literal('later')])),
  /** `container`: the place of the process confines its commands, too. */
  tools: v.optional(v.object({ sandbox: v.literal('container') })),
});
export type LaunchDocument = v.InferOutput<typeof LaunchDocument>;

/** A process for good: a recycled pid differs in `startedTicks`, another boot in `bootId`. See `src/supervise/identity.ts`. */
export const ProcessIdentity = v.object({
  pid: v.pipe(v.number(), v.integer(), v.minValue(1)),
  startedTicks: v.string(),
  bootId: v.string(),
  pidNamespace: v.string(),
});
export type ProcessIdentity = v.InferOutput<typeof ProcessIdentity>;

/** Permanent identity of a container: container names are never reused. */
export const ContainerHandle = v.object({
  kind: v.literal('container'),
  /** Unix socket of the engine. */
  engine: v.string(),
  /** Name or id. */
  id: v.string(),
});
export type ContainerHandle = v.InferOutput<typeof ContainerHandle>;

/** Permanent identity of a pod: a pod of the same name with another uid is another pod. */
export const PodHandle = v.object({
  kind: v.literal('pod'),
  namespace: v.string(),
  name: v.string(),
  /** Empty before the cluster has created the pod. */
  uid: v.string(),
});
export type PodHandle = v.InferOutput<typeof PodHandle>;

/** Identity of a workspace process in any place. */
export type Handle = ({ readonly kind: 'process' } & ProcessIdentity) | ContainerHandle | PodHandle;

/**
 * `<home>/workspaces/<key>/appserver.json`: the agent server that holds a workspace's OS lock, for this user's own
 * programs. Rights are read from here only: a clone cannot contain it.
 */
export const AppServerLock = v.object({
  version: v.literal(1),
  pid: v.number(),
  identity: ProcessIdentity,
  workspacePath: v.string(),
  managedByHub: v.boolean(),
  incarnation: v.nullable(v.string()),
  adoptionProof: v.nullable(v.string()),
  startedAt: v.string(),
  serverVersion: v.string(),
  /** Real addresses, tokens included. The keys present are the services that this server serves. */
  endpoints: v.objectWithRest({ appServerWebSocket: v.string() }, v.string()),
  /** By service: why its address is not the one that was asked for. */
  serviceNotes: v.optional(v.record(v.string(), v.string())),
  /** First health report of this start, so that a Hub that finds the address has it. An invalid one does not hide the address. */
  report: v.fallback(v.optional(HealthReport), undefined),
});
export type AppServerLock = v.InferOutput<typeof AppServerLock>;

/**
 * `<workspace>/.oratorio/appserver.lock`: names the agent server that holds the workspace's OS lock, for a message. Addresses
 * are without token, and nothing reads a right from it. That of 0.1.0 held more, which is left out here.
 */
export const WorkspaceLock = v.object({
  version: v.literal(1),
  pid: v.number(),
  identity: ProcessIdentity,
  workspacePath: v.string(),
  managedByHub: v.boolean(),
  startedAt: v.string(),
  serverVersion: v.string(),
  endpoints: v.record(v.string(), v.string()),
});
export type WorkspaceLock = v.InferOutput<typeof WorkspaceLock>;
