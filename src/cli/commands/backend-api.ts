/** Connection of the commands that query a running review backend. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import * as v from 'valibot';
import { proveServer, ServerNotProvenError } from '../../client/index.ts';
import { serviceTokenFile } from '../../review/index.ts';
import type { CommandContext } from '../command.ts';
import { CliError, usageError } from '../errors.ts';

/** State directory of a backend. */
export function stateDirectoryOf({ options, env, absolute, home }: CommandContext): string {
  const given = options['state'];
  return absolute(typeof given === 'string' ? given : env['ORATORIO_STATE_ROOT'] || join(home, 'backend'));
}

export interface BackendApi {
  /** @throws CliError with the backend's code and message */
  get<T extends v.GenericSchema>(path: string, shape: T): Promise<v.InferOutput<T>>;
  /** @throws CliError with the backend's code and message */
  post<T extends v.GenericSchema>(path: string, body: unknown, shape: T): Promise<v.InferOutput<T>>;
}

const ErrorBody = v.object({ error: v.object({ code: v.string(), message: v.string() }) });
const answerMs = 30_000;

/** The API of the backend at `--url`, with the token of its state directory, or of the environment. */
export function backendApi(context: CommandContext, command: string): BackendApi {
  const url = addressOf(context, command);
  const token = tokenOf(context);

  /** Makes the backend prove itself: another program on its port gets neither the token nor a command. */
  async function prove(signal: AbortSignal): Promise<void> {
    try {
      await proveServer({ role: 'backend', url, token, signal, timeoutMs: answerMs });
    } catch (error) {
      if (!(error instanceof ServerNotProvenError)) throw error;
      throw refusal(error, url);
    }
  }

  async function ask<T extends v.GenericSchema>(path: string, shape: T, init: RequestInit): Promise<v.InferOutput<T>> {
    const signal = AbortSignal.any([context.signal, AbortSignal.timeout(answerMs)]);
    // Before each request: another program may have taken the port since the last one.
    await prove(signal);
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
    const response = await fetch(`${url}/api/v1${path}`, { ...init, headers, signal, redirect: 'error' }).catch(
      (error: unknown) => {
        if (context.signal.aborted) throw error;
        throw new CliError('failure', `No review backend answers at ${url}.`, 'Start it with: oratorio backend');
      },
    );
    const body: unknown = await response.json().catch(() => undefined);
    const answer = v.safeParse(shape, body);
    if (response.ok && answer.success) return answer.output;
    const refused = v.safeParse(ErrorBody, body);
    if (response.ok || !refused.success)
      throw new CliError('failure', `The server at ${url} is not a review backend of this version.`);
    const { code, message } = refused.output.error;
    throw new CliError('failure', message, response.status === 401 ? tokenHint : null, code);
  }
  return {
    get: (path, shape) => ask(path, shape, {}),
    post: (path, body, shape) => ask(path, shape, { method: 'POST', body: JSON.stringify(body) }),
  };
}

/** The error that is shown instead of an answer. */
function refusal({ reason, message }: ServerNotProvenError, url: string): CliError {
  switch (reason) {
    case 'unreachable':
      return new CliError('failure', `No review backend answers at ${url}.`, 'Start it with: oratorio backend');
    case 'unknownToken': {
      const unknown = `The server at ${url} does not know the service token; nothing was sent to it.`;
      return new CliError('failure', unknown, tokenHint, 'unauthorized');
    }
    case 'weakToken':
      return new CliError(
        'failure',
        message,
        'Set a service token of at least 16 characters, or use an https address.',
      );
    case 'otherAddress':
      return new CliError(
        'failure',
        `The server at ${url} reports another address as its own; nothing was sent to it.`,
        'Name the address that the backend prints, or set ORATORIO_PUBLISHED_AS where it runs.',
      );
    default:
      return new CliError(
        'failure',
        `${url} is served by another program, or by a backend of another version; nothing was sent to it.`,
        'See which program listens there: ss -ltnp',
      );
  }
}

const tokenHint =
  'Start the backend with oratorio backend. If it runs, name its state directory with --state, or set ORATORIO_SERVICE_TOKEN.';

function addressOf({ options }: CommandContext, command: string): string {
  const given = options['url'];
  if (typeof given !== 'string') return 'http://127.0.0.1:5087';
  if (!URL.canParse(given) || !/^https?:$/.test(new URL(given).protocol))
    throw usageError(`--url must be an http address, not ${given}.`, command);
  return given.replace(/\/+$/, '');
}

function tokenOf(context: CommandContext): string {
  const given = context.env['ORATORIO_SERVICE_TOKEN'];
  if (given) return given;
  const file = serviceTokenFile(stateDirectoryOf(context));
  try {
    return readFileSync(file, 'utf8').trim();
  } catch (error) {
    throw new CliError('failure', `The service token cannot be read: ${(error as Error).message}`, tokenHint);
  }
}
