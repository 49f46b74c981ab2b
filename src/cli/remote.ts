/** Workspaces of other machines on the command line: `build:/srv/site`. */
import { type HostAnswer, type HubClient, HubRequestError } from '../client/index.ts';
import type { CommandContext } from './command.ts';
import { CliError } from './errors.ts';

export interface RemoteWorkspace {
  readonly host: string;
  /** Absolute path on that machine. */
  readonly path: string;
}

const shape = /^([a-z][a-z0-9-]{1,31}):(\/[^\0\r\n]*)$/;

/** Parses an argument as a workspace of another machine; undefined for a path of this machine. */
export function remoteWorkspace(named: string | boolean | undefined): RemoteWorkspace | undefined {
  const [, host, path] = typeof named === 'string' ? (shape.exec(named) ?? []) : [];
  return host === undefined || path === undefined ? undefined : { host, path };
}

/** All hosts; empty for a Hub of an earlier version. */
export async function hostsOf(hub: HubClient, signal: AbortSignal): Promise<HostAnswer[]> {
  try {
    return await hub.hosts({ signal });
  } catch (error) {
    if (error instanceof HubRequestError && error.status === 404) return [];
    throw error;
  }
}

/** @throws CliError hostUnknown */
export async function hostNamed(hub: HubClient, name: string, { signal }: CommandContext): Promise<HostAnswer> {
  const hosts = await hostsOf(hub, signal);
  const host = hosts.find((each) => each.name === name);
  if (host) return host;
  const hint = hosts.length === 0 ? 'Add one: oratorio hosts add ssh://me@box' : 'List the hosts: oratorio hosts';
  throw new CliError('failure', `There is no host ${name}.`, hint, 'hostUnknown');
}

/** Error for a host that is not connected, with the next step. */
export const notConnected = ({ name, state, reason, next, phase }: HostAnswer): CliError =>
  new CliError(
    'failure',
    `The host ${name} is ${state}${reason === null ? '.' : `: ${reason}`}`,
    next ??
      (state === 'disabled' ? `Connect it: oratorio hosts enable ${name}` : `Check it: oratorio hosts doctor ${name}`),
    'hostUnreachable',
    { host: name, state, phase, reason },
  );
