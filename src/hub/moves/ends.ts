import { hostname } from 'node:os';
import * as v from 'valibot';
import {
  AppServerClient,
  AppServerConnectionError,
  type CallOptions,
  type HubClient,
  JsonRpcError,
} from '../../client/index.ts';
import {
  type MovePlace,
  type MoveStep,
  type MoveStepInput,
  MoveStepResult,
  placeName,
  rpcErrors,
} from '../../protocol/index.ts';
import { hubError } from '../errors.ts';
import { onHost, unavailable } from '../pages/index.ts';
import type { Registry } from '../registry.ts';
import { onRemote } from '../remote.ts';

interface RemoteHub extends Pick<HubClient, 'moveStep'> {
  ensure(request: { readonly workspacePath: string }, options: CallOptions): Promise<unknown>;
}

/** Workspaces of this machine, and of connected hosts. */
export interface Places {
  readonly registry: Pick<Registry, 'find' | 'ensure'>;
  /** Throws for a host without a connection. */
  readonly fleet: { connected(host: string): { readonly hub: RemoteHub } };
}

/** One place of a move. Its methods throw `HttpError`. */
export interface MoveEnd {
  /** Starts the agent server if it does not run. */
  ensure(signal: AbortSignal): Promise<void>;
  step(step: MoveStep, signal: AbortSignal): Promise<MoveStepResult>;
}

/** Refusals of an agent server: all other errors may pass. */
const refusals: ReadonlySet<number> = new Set(
  (['moveRefused', 'threadNotFound', 'invalidParams', 'methodNotFound', 'workspaceLost'] as const).map(
    (name) => rpcErrors[name].code,
  ),
);

/**
 * Passes a step to the agent server of a workspace of this machine.
 *
 * @throws HttpError `moveRefused`, `notFound`, or `workspaceUnavailable` while it does not serve
 */
export async function stepHere(
  registry: Pick<Registry, 'find'>,
  { workspacePath, ...step }: MoveStepInput,
  signal: AbortSignal,
): Promise<MoveStepResult> {
  const workspace = registry.find(workspacePath);
  const endpoint = workspace?.facts.endpoints['appServerWebSocket'];
  if (!workspace) throw hubError('notFound', `There is no workspace ${workspacePath} here. Add it with "oratorio up".`);
  if (endpoint === undefined) throw unavailable(workspace);
  const clientInfo = { name: 'oratorio-move', version: '1' };
  const server = await AppServerClient.connect(endpoint, { clientInfo, signal }).catch(() => {
    throw unavailable(workspace);
  });
  try {
    return v.parse(MoveStepResult, await server.request('thread/move', step, { signal }));
  } catch (error) {
    if (error instanceof JsonRpcError && refusals.has(error.code)) {
      const message = error.message.replace(/^Move refused: /, '');
      throw hubError('moveRefused', `${message.charAt(0).toUpperCase()}${message.slice(1)}.`);
    }
    if (error instanceof JsonRpcError || error instanceof AppServerConnectionError) throw unavailable(workspace);
    throw error;
  } finally {
    server.close();
  }
}

/** A workspace of this machine, or of a host. */
export function endAt({ host, workspacePath }: MovePlace, { registry, fleet }: Places): MoveEnd {
  if (host === null) {
    return {
      async ensure() {
        await registry.ensure({ workspacePath, startIfMissing: true, apiProxy: undefined, place: undefined });
      },
      step: (step, signal) => stepHere(registry, { workspacePath, ...step }, signal),
    };
  }
  return {
    async ensure(signal) {
      const { hub } = onHost(() => fleet.connected(host));
      await onRemote(host, () => hub.ensure({ workspacePath }, { signal }), signal);
    },
    async step(step, signal) {
      const { hub } = onHost(() => fleet.connected(host));
      let result: MoveStepResult | undefined;
      // Pieces are bytes, not texts to show: they are checked by their schema, and by the digest of the whole.
      await onRemote(
        host,
        async () => {
          result = await hub.moveStep({ workspacePath, ...step }, { signal });
        },
        signal,
      );
      if (!result) throw hubError('badGateway', `The Hub of ${host} sent no answer.`);
      return result;
    },
  };
}

/** Name of a place for the record at `reader`, which knows no hosts of this machine. */
export const placeFor = (place: MovePlace, reader: MovePlace): string =>
  place.host === null && reader.host !== null ? `${hostname()}:${place.workspacePath}` : placeName(place);
