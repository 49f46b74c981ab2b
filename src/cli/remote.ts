/** Hosts on the command line. */
import { type HostAnswer, type HubClient, HubRequestError } from '../client/index.ts';
import type { CommandContext } from './command.ts';
import { CliError } from './errors.ts';

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

/** Next step for a host that is not connected, where its state names none. */
export const connectHint = (name: string, state: unknown): string =>
  state === 'disabled' ? `Connect it: oratorio hosts enable ${name}` : `Check it: oratorio hosts doctor ${name}`;

/** Error for a host that is not connected, with the next step. */
export const notConnected = ({ name, state, reason, next, phase }: HostAnswer): CliError =>
  new CliError(
    'failure',
    `The host ${name} is ${state}${reason === null ? '.' : `: ${reason}`}`,
    next ?? connectHint(name, state),
    'hostUnreachable',
    { host: name, state, phase, reason },
  );
