import { proveServer, ServerNotProvenError } from '../../client/index.ts';
import { plainHost } from '../../lib/index.ts';
import { defaults, type ProcessIdentity } from '../../protocol/index.ts';
import { isAlive, watchedDashboardToken } from '../../supervise/index.ts';
import { hubError } from '../errors.ts';
import { phaseOf, publicState } from '../record.ts';
import type { Registry } from '../registry.ts';
import type { StoredContainer } from '../store.ts';
import { awake } from '../wake.ts';
import type { Workspace } from '../workspace.ts';

/** Current address of a workspace's Dashboard, and the token that opens it. Never shown to a client. */
export interface Target {
  /** `http://127.0.0.1:41236` */
  readonly origin: string;
  /** Host of `origin` as a socket takes it: an IPv6 address without its brackets. */
  readonly host: string;
  readonly port: number;
  /** Unix socket of the tunnel to this address, for the Hub of another machine. */
  readonly socketPath?: string | undefined;
  /** Path of the page on that Hub; absent: the target is the Dashboard itself. */
  readonly prefix?: string;
  readonly token: string;
  /**
   * Called before a connection is opened. An open connection does not need it: at its other end is the process that
   * was there when it was opened.
   *
   * @throws HttpError 503 `workspaceUnavailable` when that process is gone, for another one may have its port
   */
  confirm(): void;
  /** Called when the process did not answer: it must prove itself again before it gets another token. */
  doubt(): void;
}

export interface TargetsOptions {
  readonly home: string;
  readonly registry: Pick<Registry, 'byId'>;
  /** See `Readers`. */
  readonly readers: { targetOf(workspace: Workspace): Promise<Target> | undefined };
}

const { retryAfterMs, retryAfterMaxMs } = defaults.hub;

type ServingProcess = ProcessIdentity | StoredContainer;

/** A server that has proved itself: while this process lives, no other can have its port. */
interface Proven {
  readonly endpoint: string;
  readonly process: ServingProcess;
  readonly target: Target;
}

/**
 * Finds the Dashboard behind `/w/<id>/`. Starts the agent server of a sleeping workspace.
 *
 * @throws HttpError 404 `notFound` for an unknown id, or a workspace without a dashboard; 503 `workspaceUnavailable` with
 *   `Retry-After` and the state while its agent server does not serve
 */
export function createTargets({
  home,
  registry,
  readers,
}: TargetsOptions): (id: string, signal: AbortSignal) => Promise<Target> {
  const proven = new WeakMap<Workspace, Proven>();
  const tokens = new WeakMap<Workspace, () => string>();

  function makeTarget(workspace: Workspace, endpoint: string, process: ServingProcess, token: string): Target {
    const { origin, hostname, port } = new URL(endpoint);
    return {
      origin,
      host: plainHost(hostname),
      port: Number(port),
      token,
      confirm() {
        // The Hub itself listens on the ports of a container or a pod.
        if ('engine' in process || isAlive(process) !== 'gone') return;
        proven.delete(workspace);
        throw unavailable(workspace);
      },
      doubt: () => void proven.delete(workspace),
    };
  }

  function tokenOf(workspace: Workspace): string {
    let reader = tokens.get(workspace);
    if (!reader) {
      // Makes the token of a workspace that has none yet.
      reader = watchedDashboardToken(home, workspace.path);
      tokens.set(workspace, reader);
    }
    return reader();
  }

  return async function targetOf(id, signal) {
    const workspace = registry.byId(id);
    if (!workspace) throw hubError('notFound', 'There is no such workspace.');
    await awake(workspace, signal);
    const reader = readers.targetOf(workspace);
    if (reader) return reader;
    const { endpoint, process } = serving(workspace);
    const token = tokenOf(workspace);
    const known = proven.get(workspace);
    if (known?.endpoint === endpoint && known.process === process && known.target.token === token) return known.target;
    proven.delete(workspace);
    const target = makeTarget(workspace, endpoint, process, token);
    target.confirm();
    await prove(workspace, target, signal);
    proven.set(workspace, { endpoint, process, target });
    return target;
  };
}

/** @throws HttpError */
function serving(workspace: Workspace): { readonly endpoint: string; readonly process: ServingProcess } {
  const { facts } = workspace;
  const process = facts.stored.server?.container ?? facts.stored.server?.identity ?? facts.external;
  const snapshot = workspace.snapshot();
  if (!process || !(snapshot.matches('running') || snapshot.matches('unhealthy'))) throw unavailable(workspace);
  const endpoint = facts.endpoints['dashboard'];
  if (endpoint === undefined) {
    const reason = facts.services['dashboard']?.reason ?? 'its agent server serves none.';
    throw hubError('notFound', `The workspace has no dashboard: ${reason}`);
  }
  return { endpoint, process };
}

async function prove(workspace: Workspace, { origin: url, token }: Target, signal: AbortSignal): Promise<void> {
  try {
    await proveServer({ role: 'dashboard', url, token, signal });
  } catch (error) {
    if (!(error instanceof ServerNotProvenError)) throw error;
    throw unavailable(workspace);
  }
}

/** The refusal while an agent server is away. */
export function unavailable(workspace: Workspace) {
  const snapshot = workspace.snapshot();
  const state = publicState(snapshot);
  const nextAttemptAt = snapshot.matches({ exited: 'backingOff' }) ? workspace.facts.nextAttemptAt : null;
  const waitMs = nextAttemptAt === null ? retryAfterMs : Date.parse(nextAttemptAt) - Date.now();
  const seconds = Math.ceil(Math.min(Math.max(waitMs, retryAfterMs), retryAfterMaxMs) / 1_000);
  return hubError(
    'workspaceUnavailable',
    `The agent server of this workspace does not answer now: it is ${state}. Try again after ${seconds} s.`,
    { state, phase: phaseOf(snapshot), nextAttemptAt },
    undefined,
    [['retry-after', String(seconds)]],
  );
}
