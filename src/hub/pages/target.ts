import { proveServer, ServerNotProvenError } from '../../client/index.ts';
import { type AppServerState, defaults, type ProcessIdentity } from '../../protocol/index.ts';
import { type DashboardTokens, dashboardToken, isAlive, watchedDashboardTokens } from '../../supervise/index.ts';
import { hubError } from '../errors.ts';
import { phaseOf, publicState } from '../record.ts';
import type { Registry } from '../registry.ts';
import type { Workspace } from '../workspace.ts';

/** Where the Dashboard of a workspace answers now, and what opens it. Never shown to a client. */
export interface Target {
  /** `http://127.0.0.1:41236` */
  readonly origin: string;
  readonly token: string;
  /** It did not answer: it must prove itself again before it gets another token. */
  doubt(): void;
}

export interface TargetsOptions {
  readonly home: string;
  readonly registry: Pick<Registry, 'byId'>;
}

const { retryAfterMs, retryAfterMaxMs } = defaults.hub;
const serves: readonly AppServerState[] = ['running', 'unhealthy'];

/** A server that has proved itself: while this process lives, no other can have its port. */
interface Proven {
  readonly origin: string;
  readonly token: string;
  readonly process: ProcessIdentity;
}

/**
 * Finds the Dashboard behind `/w/<id>/`.
 *
 * @throws HttpError 404 `notFound` for an unknown id, or a workspace without a dashboard; 503 `workspaceUnavailable` with
 *   `Retry-After` and the state while its agent server does not serve
 */
export function createTargets({
  home,
  registry,
}: TargetsOptions): (id: string, signal: AbortSignal) => Promise<Target> {
  const proven = new WeakMap<Workspace, Proven>();
  const readers = new WeakMap<Workspace, () => DashboardTokens>();

  function tokenOf(workspace: Workspace): string {
    const known = readers.get(workspace);
    if (known) return known().current;
    // Makes the token of a workspace that has none yet.
    dashboardToken(home, workspace.path);
    const reader = watchedDashboardTokens(home, workspace.path);
    readers.set(workspace, reader);
    return reader().current;
  }

  return async function targetOf(id, signal) {
    const workspace = registry.byId(id);
    if (!workspace) throw hubError('notFound', 'There is no such workspace.');
    const { origin, process } = serving(workspace);
    const token = tokenOf(workspace);
    const known = proven.get(workspace);
    const isKnown = known?.origin === origin && known.token === token && known.process === process;
    if (!isKnown) {
      proven.delete(workspace);
      await prove(workspace, origin, token, signal);
      proven.set(workspace, { origin, token, process });
    }
    return { origin, token, doubt: () => void proven.delete(workspace) };
  };
}

/** @throws HttpError */
function serving(workspace: Workspace): { readonly origin: string; readonly process: ProcessIdentity } {
  const { facts } = workspace;
  const process = facts.stored.server?.identity ?? facts.external;
  if (!serves.includes(publicState(workspace.snapshot())) || !process || isAlive(process) === 'gone')
    throw unavailable(workspace);
  const endpoint = facts.endpoints['dashboard'];
  if (endpoint === undefined) {
    const reason = facts.services['dashboard']?.reason ?? 'its agent server serves none.';
    throw hubError('notFound', `The workspace has no dashboard: ${reason}`);
  }
  return { origin: new URL(endpoint).origin, process };
}

async function prove(workspace: Workspace, url: string, token: string, signal: AbortSignal): Promise<void> {
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
    `The agent server of this workspace does not answer now: it is ${state}.`,
    { state, phase: phaseOf(snapshot), nextAttemptAt },
    undefined,
    [['retry-after', String(seconds)]],
  );
}
