import { existsSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import * as v from 'valibot';
import {
  ApiProxyRequest,
  ContainerHandle,
  HealthReport,
  PlaceRequest,
  PodHandle,
  ProcessIdentity,
  serviceNames,
} from '../protocol/index.ts';
import { damagedCopyPath, readJson, writeFileAtomicAsync } from '../supervise/index.ts';
import type { OwnedFile } from './credentials.ts';

/** A process the Hub has started: its identity, and the marker all its descendants carry. */
const StoredProcess = v.object({ marker: v.string(), identity: v.nullable(ProcessIdentity) });

/** Agent server in a container. The `identity` of its process is null, because its process id belongs to another system. */
const StoredEngineContainer = v.object({
  ...ContainerHandle.entries,
  image: v.string(),
  /** Absent in files of earlier Hubs. */
  network: v.optional(v.picklist(['none', 'bridge'])),
  /** Id of its first process on this machine; null before the start. */
  pid: v.nullable(v.number()),
  /** Ports of its services, on which the Hub listens. */
  ports: v.record(v.string(), v.number()),
});

/** Agent server in a pod, and the context of its cluster. */
const StoredPod = v.object({
  ...PodHandle.entries,
  /** Address of the API server. */
  engine: v.string(),
  kubeconfig: v.string(),
  context: v.string(),
  image: v.string(),
  pid: v.null(),
  /** Ports of its services, on which the Hub listens. */
  ports: v.record(v.string(), v.number()),
});
export type StoredPod = v.InferOutput<typeof StoredPod>;

/** Agent server that is not a process of this machine. */
const StoredContainer = v.variant('kind', [StoredEngineContainer, StoredPod]);
export type StoredContainer = v.InferOutput<typeof StoredContainer>;

/** Absent for a process of this machine, and in files of earlier Hubs. */
const StoredServer = v.object({ ...StoredProcess.entries, container: v.optional(StoredContainer) });

/** State of one workspace that survives the Hub. Tokens are not here: a live agent server publishes its own in the home (0600). */
const StoredWorkspace = v.object({
  workspacePath: v.string(),
  canonicalWorkspacePath: v.string(),
  /** Identity of the directory at the last start: a renamed one is found again. */
  directory: v.optional(v.nullable(v.string()), null),
  /** Written before the process is spawned, so that no crash leaves an unknown process. */
  server: v.nullable(StoredServer),
  /** Place that the user chose for the workspace; absent: the place in the settings. */
  place: v.optional(PlaceRequest),
  /** A server that this user has started without a Hub was seen. Nothing is stored by which a later Hub could signal it. */
  external: v.optional(v.boolean(), false),
  proxy: v.nullable(v.object({ ...StoredProcess.entries, request: ApiProxyRequest })),
  exitCode: v.nullable(v.number()),
  lastError: v.nullable(v.string()),
  lastStartedAt: v.nullable(v.string()),
  lastExitedAt: v.nullable(v.string()),
  /** Why the server rests, when no request has put it to rest. */
  rest: v.optional(
    v.nullable(
      v.object({
        kind: v.string(),
        message: v.string(),
        /** Decision of the Hub. */
        note: v.optional(v.nullable(v.string())),
        /** Automatic restarts before it came to rest. */
        restarts: v.optional(v.number()),
      }),
    ),
    null,
  ),
  /** Failures that count for the restart policy, in milliseconds since the epoch; oldest first. */
  failures: v.optional(v.array(v.number()), []),
  /** Ports of a workspace that sleeps, by service; null: it does not sleep. */
  asleep: v.optional(
    v.nullable(v.record(v.picklist(serviceNames), v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(65_535)))),
    null,
  ),
  /** Seed of the WebSocket token: a server that wakes gets the token that its clients have. */
  tokenSeed: v.optional(v.nullable(v.string()), null),
  /** The user stopped the server: no Hub starts it without a request. */
  stoppedByUser: v.optional(v.boolean(), false),
  /** Last report of an agent server of this workspace. Pending approvals are not on disk. */
  report: v.optional(
    v.nullable(v.object({ ...HealthReport.entries, pendingApprovals: v.optional(v.number(), 0) })),
    null,
  ),
  /** Hash of the settings that the last start has read. */
  configHash: v.optional(v.nullable(v.string()), null),
});
export type StoredWorkspace = v.InferOutput<typeof StoredWorkspace>;
export type StoredProcess = v.InferOutput<typeof StoredProcess>;

const StoredHub = v.object({ version: v.literal(1), updatedAt: v.string(), appServers: v.array(StoredWorkspace) });

/** A damaged list of workspaces. */
export interface ListDamage {
  readonly file: string;
  readonly problem: string;
  /** New path of the damaged file; null when it could not be moved. */
  readonly copy: string | null;
}

export interface WorkspaceStore extends OwnedFile {
  /** Workspaces that the last Hub left. A damaged file is moved aside, so that no write replaces it. */
  load(): { readonly workspaces: readonly StoredWorkspace[]; readonly damage: ListDamage | null };
  /** Resolves once the present state is on disk; writes a missing file, and one that differs. Calls during a write share the next one. */
  save(): Promise<void>;
  /**
   * Resolves when no write is under way, also after a failed one. No write begins afterwards: the process may end during it, and
   * the file belongs to the next holder of the lock.
   */
  end(): Promise<void>;
}

/** Moves the damaged file aside, next to its place. Returns its new path; null when the move fails. */
function moveDamagedAside(file: string): string | null {
  const copy = damagedCopyPath(file);
  try {
    renameSync(file, copy);
    return copy;
  } catch {
    return null;
  }
}

/** Removes the part of a workspace's state that changes within a turn: no save follows it. */
function lastingPart(workspace: StoredWorkspace): v.InferInput<typeof StoredWorkspace> {
  const { report, ...rest } = workspace;
  if (!report) return workspace;
  const { pendingApprovals: _, turnsResumed: __, agent, ...lasting } = report;
  return { ...rest, report: { ...lasting, agent: agent?.state === 'busy' ? { ...agent, state: 'ready' } : agent } };
}

/**
 * `appservers.json` (0600, atomic). `collect` gives the present truth; it is called at the moment of each write.
 */
export function createStore(statePath: string, collect: () => readonly StoredWorkspace[]): WorkspaceStore {
  const file = join(statePath, 'appservers.json');
  let writing: Promise<void> = Promise.resolve();
  let next: Promise<void> | null = null;
  let hasEnded = false;
  /** Last written state, without its time. */
  let written: string | null = null;

  async function write(): Promise<void> {
    next = null;
    // A line for each workspace: a start waits for this write, and there may be thousands.
    const state = collect()
      .map((workspace) => JSON.stringify(lastingPart(workspace)))
      .join(',\n');
    if (state === written && existsSync(file)) return;
    const head = JSON.stringify({ version: 1, updatedAt: new Date().toISOString(), appServers: [] });
    await writeFileAtomicAsync(file, `${head.slice(0, -2)}\n${state}\n]}\n`);
    written = state;
  }

  return {
    file,
    load() {
      const read = readJson(file, StoredHub);
      if (read.kind === 'ok') return { workspaces: read.value.appServers, damage: null };
      if (read.kind === 'missing') return { workspaces: [], damage: null };
      return { workspaces: [], damage: { file, problem: read.problem, copy: moveDamagedAside(file) } };
    },
    save() {
      if (next) return next;
      if (hasEnded) return writing;
      next = writing.then(write, write);
      writing = next.catch(() => undefined);
      return next;
    },
    end() {
      hasEnded = true;
      return writing;
    },
  };
}
