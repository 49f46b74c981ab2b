import * as v from 'valibot';
import { type HubAddress, HubClient, HubRequestError, proveServer, ServerNotProvenError } from '../client/index.ts';
import { messageOf } from '../lib/index.ts';
import { missingRoute, version as ownVersion, RemoteAddress } from '../protocol/index.ts';
import { clockOffset } from './clock.ts';
import { HostFailure, lastLine, problemIn, sshFailure } from './failure.ts';
import { addressCommand, type RemoteEnd, type SshConnection } from './ssh.ts';
import { isNewerVersion, isUsableVersion } from './version.ts';

/** Size limit of an answer from a remote Hub. 5,000 workspaces need about 7 MB. */
const maxAnswerBytes = 16 * 1_048_576;

/** Exit code of this product and others for an unknown command or option. */
const wrongUsage = 2;

/** Most characters of a version that are shown. */
const maxVersion = 40;

/** Exit codes of a shell that cannot find a program, or is not allowed to run it. */
const noProgram: ReadonlySet<number | null> = new Set([126, 127]);

/** Reads the output of `hub address`, after any output of a login shell. @throws HostFailure */
export function remoteAddressIn({ exitCode, stdout, stderr }: RemoteEnd): RemoteAddress {
  const line = stdout.split('\n').findLast((each) => each.startsWith('{')) ?? '';
  const parsed = v.safeParse(v.pipe(v.string(), v.parseJson(), RemoteAddress), line);
  if (exitCode === 0 && parsed.success) return parsed.output;
  // Exit code of ssh itself.
  if (exitCode === 255) throw sshFailure(stderr);
  const words = problemIn(stderr);
  if (noProgram.has(exitCode))
    throw new HostFailure('noProgram', words || 'The remote machine cannot find the program.');
  // An earlier version has no such command.
  if (exitCode === wrongUsage || exitCode === 0)
    throw new HostFailure('version', `The remote version does not have the command "hub address". ${words}`.trim());
  throw new HostFailure(null, words || `The remote command "hub address" failed with ${exitCode ?? 'a signal'}.`);
}

/** Accepts a remote Hub of this minor version or an earlier one. @throws HostFailure `version` */
export function requireVersion(remote: string, own: string = ownVersion): void {
  if (isUsableVersion(remote, own)) return;
  const shown = remote.slice(0, maxVersion);
  const order = isNewerVersion(remote, own) ? ', which is newer than' : ', which does not work with';
  throw new HostFailure('version', `The host runs Oratorio ${shown}${order} ${own} on this machine.`, shown);
}

/** Open tunnel to a remote Hub. */
interface Tunnel {
  readonly address: HubAddress & { readonly token: string };
  readonly version: string;
  /** Milliseconds by which the clock of this machine is ahead. */
  readonly clockOffsetMs: number;
}

/** Requests the address of the remote Hub, then opens the tunnel to it. @throws HostFailure */
export async function openTunnel(
  connection: SshConnection,
  program: string,
  socketPath: string,
  signal: AbortSignal,
): Promise<Tunnel> {
  const { apiBaseUrl, token, version, now } = remoteAddressIn(await connection.run(addressCommand(program), signal));
  const clockOffsetMs = clockOffset(now);
  requireVersion(version);
  await connection.forward(new URL(apiBaseUrl), signal);
  return { address: { apiBaseUrl, token, socketPath, maxAnswerBytes }, version, clockOffsetMs };
}

/** Verifies that the Hub at the other end of the tunnel holds the token. @throws HostFailure */
export async function prove(address: HubAddress & { readonly token: string }, signal: AbortSignal): Promise<void> {
  const { apiBaseUrl: url, token, socketPath } = address;
  try {
    await proveServer({ role: 'hub', url, token, socketPath, signal });
  } catch (error) {
    if (!(error instanceof ServerNotProvenError)) throw error;
    // A Hub that ends during the exchange is unreachable, not refused.
    throw new HostFailure(error.reason === 'unreachable' ? null : 'notProven', error.message);
  }
}

export const clientOf = (address: HubAddress): HubClient => new HubClient(address, { isProven: true });

/** Converts an error of a request to a failure of the connection. */
export function failureOf(error: unknown): HostFailure {
  if (error instanceof HostFailure) return error;
  if (error instanceof HubRequestError && error.code === 'tokenRevoked')
    return new HostFailure('notProven', 'The remote Hub has revoked the token of this machine.');
  if (error instanceof HubRequestError && error.message === missingRoute)
    return new HostFailure('version', 'The remote version does not have the list and inbox that a host needs.');
  return new HostFailure(null, lastLine(messageOf(error)));
}
