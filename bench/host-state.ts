/** Hosts of a Hub, and their connections. */
import type { BuiltHub } from '../test/e2e/harness.ts';
import type { Machines } from '../test/e2e/ssh-machine.ts';
import { until } from './harness.ts';

const attemptMs = 60_000;

export const stateOf = async (hub: BuiltHub, name: string): Promise<string> => {
  const { body } = await hub.call('GET', '/v1/hosts');
  return body.find((host: { readonly name: string }) => host.name === name)?.state;
};

export const isConnected = (hub: BuiltHub, name: string): Promise<true> =>
  until(`${name} is connected`, attemptMs, 2, async () => (await stateOf(hub, name)) === 'connected' || undefined);

export async function addHost(hub: BuiltHub, { program }: Machines, name: string): Promise<void> {
  const { status, body } = await hub.call('POST', '/v1/hosts', { name, ssh: 'ssh://box', program });
  if (status !== 200) throw new Error(`POST /v1/hosts: ${status} ${JSON.stringify(body)}`);
  await isConnected(hub, name);
}
