import { DeployError, type DeployErrorCode } from '../errors.ts';
import { lastLines } from './last-lines.ts';
import type { RunResult } from './types.ts';

/** For everything that is done with an engine. */
export interface OperationOptions {
  readonly signal?: AbortSignal;
  /** Called with each line of the programs' output, without secrets. */
  readonly onLine?: (line: string) => void;
  /** Besides those of the stack's `.env`. */
  readonly secrets?: readonly string[];
}

/** Options that every operation passes on to its commands. */
export function passedOn({ signal, onLine, secrets = [] }: OperationOptions, more: readonly string[] = []) {
  return { ...(signal && { signal }), ...(onLine && { onLine }), secrets: [...secrets, ...more] };
}

/** Options for queries, whose output is not shown. */
export function quietly({ signal, secrets = [] }: OperationOptions, more: readonly string[] = []) {
  return { ...(signal && { signal }), secrets: [...secrets, ...more] };
}

/** Messages of engines and registries, with the error and hint for the user. The first match wins. */
const signs: readonly { readonly sign: RegExp; readonly code: DeployErrorCode; readonly hint: string | null }[] = [
  {
    sign: /no space left on device|disk quota exceeded/i,
    code: 'diskFull',
    hint: 'Make room (docker system df shows the data of the engine), then run the same command again.',
  },
  {
    sign: /port is already allocated|address already in use|failed to bind (?:host )?port/i,
    code: 'portTaken',
    hint: 'End the program that listens there, or choose another port in .env.',
  },
  {
    sign: /cannot expose privileged port|ip_unprivileged_port_start/i,
    code: 'unsupportedPlatform',
    hint: 'A rootless engine may publish ports 80 and 443 after: sudo sysctl net.ipv4.ip_unprivileged_port_start=80',
  },
  {
    sign: /pull access denied|manifest (?:unknown|for .* not found)|no such image|unauthorized|toomanyrequests|repository does not exist/i,
    code: 'imageFailed',
    hint: 'Check the name of the image and whether you are logged in to its registry (docker login).',
  },
  {
    sign: /no such host|i\/o timeout|TLS handshake timeout|connection refused.*registry|network is unreachable/i,
    code: 'imageFailed',
    hint: 'The registry cannot be reached: check the network, or a proxy of the engine.',
  },
  {
    sign: /cannot connect to the docker daemon|is the docker daemon running|permission denied.*docker/i,
    code: 'engineUnreachable',
    hint: 'Run: docker info',
  },
];

/**
 * Makes the error of a failed command from its output.
 * `what` completes `… failed`, e.g. `Starting the backend`.
 * @param otherwise the code of an unknown failure
 */
export function failureOf(
  what: string,
  { exitCode, stderr, stdout }: RunResult,
  otherwise: DeployErrorCode,
): DeployError {
  const said = stderr.trim() === '' ? stdout : stderr;
  const known = signs.find(({ sign }) => sign.test(said));
  const words = lastLines(said, 4) || `exit code ${exitCode}`;
  return new DeployError(known?.code ?? otherwise, `${what} failed: ${words}`, known?.hint ?? null);
}

/** The result of a command that must succeed. @throws DeployError as `failureOf` says */
export async function must(what: string, running: Promise<RunResult>, otherwise: DeployErrorCode): Promise<RunResult> {
  const result = await running;
  if (result.exitCode === 0) return result;
  throw failureOf(what, result, otherwise);
}
