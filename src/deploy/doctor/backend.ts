import * as v from 'valibot';
import { probeHttp } from '../../lib/index.ts';
import { SettingsView as FullSettings, BackendStatus as FullStatus } from '../../protocol/index.ts';
import { defaults } from '../defaults.ts';
import { DeployError } from '../errors.ts';
import type { DoctorContext } from './context.ts';
import { limits } from './limits.ts';

/** Fields of the backend's status that the checks read. */
export const BackendStatus = v.pick(FullStatus, ['version', 'source', 'deadJobs']);
export const SettingsView = v.pick(FullSettings, ['writable', 'problem', 'warnings', 'restartNeededFor']);

/** Finds the backend on the loopback of this host: by its container, or by `.env` without one. */
export async function backendUrl(context: DoctorContext): Promise<string> {
  const backend = await context.service('backend').catch(() => undefined);
  const published = backend?.ports.find(({ containerPort }) => containerPort === defaults.containerPorts.backend);
  return `http://127.0.0.1:${published?.hostPort ?? context.value('ORATORIO_BACKEND_PORT')}`;
}

/** Asks the backend's API with the token of `.env`. @throws DeployError when it does not answer as it should */
export async function askBackend<const S extends v.GenericSchema>(
  context: DoctorContext,
  path: string,
  schema: S,
  signal: AbortSignal,
): Promise<v.InferOutput<S>> {
  const { ok, status, body, error } = await probeHttp(`${await backendUrl(context)}${path}`, {
    headers: { authorization: `Bearer ${context.value('ORATORIO_SERVICE_TOKEN')}` },
    timeoutMs: limits.askMs,
    bodyBytes: limits.answerBytes,
    signal,
  });
  if (status === 401)
    throw new DeployError(
      'unhealthy',
      'The backend does not take the service token of .env.',
      'It was started with another one: oratorio server restart',
    );
  if (!ok)
    throw new DeployError(
      'unhealthy',
      `The backend answers ${status ?? error}.`,
      'oratorio server logs --service backend',
    );
  const parsed = v.safeParse(schema, jsonOf(body));
  if (parsed.success) return parsed.output;
  throw new DeployError(
    'unhealthy',
    'Something else than the backend answers on its port.',
    'Look who listens there: ss -ltnp',
  );
}

/** Parses JSON; undefined for any other text. */
export function jsonOf(text: string | undefined): unknown {
  try {
    return JSON.parse(text ?? '');
  } catch {
    return undefined;
  }
}
