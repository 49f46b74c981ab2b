import * as v from 'valibot';
import { BackendStatus } from '../../protocol/index.ts';
import { type ChangeRecord, type LockHolder, lastChanges, lockHolder } from '../apply/index.ts';
import { defaults } from '../defaults.ts';
import { type Engine, type ServiceState, serviceStates } from '../engine/index.ts';
import { DeployError } from '../errors.ts';
import { readStack, type Stack } from '../stack/index.ts';
import { type ImageRecord, readImageRecord } from './images.ts';
import { type IngressStatus, ingressOf } from './ingress.ts';
import { stackRedactor } from './without-secrets.ts';

/** State of a backend as seen from this host. */
export type BackendAnswer =
  | { readonly state: 'answers'; readonly status: BackendStatus }
  | { readonly state: 'silent'; readonly problem: string };

export interface StackStatus {
  readonly directory: string;
  /** Everything that should run does, and is healthy. */
  readonly isHealthy: boolean;
  readonly services: readonly ServiceState[];
  readonly missing: readonly string[];
  readonly images: ImageRecord | null;
  readonly url: string;
  /** Access for this host's users from elsewhere (gateway rule 6). */
  readonly tunnel: string;
  readonly backend: BackendAnswer;
  readonly ingress: IngressStatus;
  /** Newest first. */
  readonly changes: readonly ChangeRecord[];
  /** Process that changes it now. */
  readonly busy: LockHolder | null;
}

/** Reads the state of a stack. Changes nothing. @throws DeployError notAStack, or when the engine cannot be asked */
export async function stackStatus(
  directory: string,
  engine: Engine,
  { signal, user, host }: { readonly signal: AbortSignal; readonly user: string; readonly host: string },
): Promise<StackStatus> {
  const stack = readStack(directory);
  const [services, backend] = await Promise.all([
    serviceStates(engine, stack.layout, { signal }),
    askBackend(stack, signal),
  ]);
  const wanted = ['agent', 'backend', ...(stack.hasIngress ? ['webhook-gateway'] : [])];
  const missing = wanted.filter((name) => !services.some(({ service }) => service === name));
  const port = portOf(stack);
  return {
    directory: stack.layout.directory,
    isHealthy: missing.length === 0 && services.every(isWell) && backend.state === 'answers',
    services,
    missing,
    images: readImageRecord(stack.layout),
    url: `http://127.0.0.1:${port}`,
    tunnel: tunnelLine({ user, host, port }),
    backend,
    ingress: ingressOf(stack, services),
    changes: lastChanges(stack.layout, 5).map(withoutSecretsOf(stack)),
    busy: lockHolder(stack.layout),
  };
}

/** Journals of earlier versions may hold words of a program that quoted `.env`. */
function withoutSecretsOf({ layout }: Stack): (change: ChangeRecord) => ChangeRecord {
  const redact = stackRedactor(layout);
  return ({ failure, ...change }) => ({
    ...change,
    failure: failure && { ...failure, message: redact(failure.message) },
  });
}

export const isWell = ({ state, health }: ServiceState): boolean =>
  state === 'running' && (health === 'healthy' || health === 'none');

/** The line of gateway rule 6: the system's own ssh, no password and no key of ours. */
export function tunnelLine({ user, host, port }: { user: string; host: string; port: number }): string {
  const local = defaults.ports.backend;
  return `ssh -N -L ${local}:127.0.0.1:${port} ${user}@${host}`;
}

export const portOf = ({ values }: Pick<Stack, 'values'>): number =>
  Number(values.get('ORATORIO_BACKEND_PORT') || defaults.ports.backend);

/** Asks with the token of `.env`; a foreign answer counts as silence. */
async function askBackend(stack: Stack, signal: AbortSignal): Promise<BackendAnswer> {
  const url = `http://127.0.0.1:${portOf(stack)}/api/v1/status`;
  try {
    const answer = await fetch(url, {
      headers: { authorization: `Bearer ${stack.values.get('ORATORIO_SERVICE_TOKEN') ?? ''}` },
      redirect: 'error',
      signal: AbortSignal.any([signal, AbortSignal.timeout(defaults.timeouts.httpMs)]),
    });
    if (!answer.ok) return { state: 'silent', problem: `It answered ${answer.status}.` };
    const parsed = v.safeParse(BackendStatus, await answer.json());
    return parsed.success
      ? { state: 'answers', status: parsed.output }
      : { state: 'silent', problem: 'The server there is not a review backend.' };
  } catch (error) {
    if (signal.aborted) throw new DeployError('cancelled', 'It was cancelled.', null, { cause: error });
    return { state: 'silent', problem: 'The backend does not answer.' };
  }
}

/** Loopback port of the backend of the stack in a directory. @throws DeployError notAStack */
export const portOfStack = (directory: string): number => portOf(readStack(directory));
