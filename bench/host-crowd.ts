/** Memory and processor time that hosts cost the Hub that follows them. */
import type { BuiltHub } from '../test/e2e/harness.ts';
import type { Machines } from '../test/e2e/ssh-machine.ts';
import { cpuMs, pssKiB, rssKiB, wait } from './harness.ts';
import { addHost } from './host-state.ts';

/** Figures for each host. */
export interface HostCrowd {
  readonly hosts: number;
  readonly hubMiB: number;
  readonly sshMiB: number;
  readonly idlePercent: number;
  /** Events of all hosts. */
  readonly eventsPerSecond: number;
  readonly busyPercent: number;
}

const settleMs = 3_000;
const busyMs = 10_000;
/** Pause between two events of the one machine behind all hosts: about 200 events a second in all. */
const pauseOf = (hosts: number): number => (1_000 * hosts) / 200;

/** Posts notifications at a pace. @returns their number */
async function post(remote: BuiltHub, everyMs: number, forMs: number): Promise<number> {
  const from = performance.now();
  let count = 0;
  while (performance.now() - from < forMs) {
    await remote.client.requestNotification({ title: `crowd ${count}` });
    count += 1;
    await wait(Math.max(0, from + count * everyMs - performance.now()));
  }
  return count;
}

const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0);

/** Adds hosts one after the other, then measures them at rest, and with events. */
export async function crowdOfHosts(
  hub: BuiltHub,
  machines: Machines,
  { hosts, idleMs, remote }: { readonly hosts: number; readonly idleMs: number; readonly remote: () => BuiltHub },
): Promise<HostCrowd> {
  await wait(settleMs);
  const before = rssKiB(hub.pid);
  for (let index = 1; index <= hosts; index += 1) await addHost(hub, machines, `host-${index}`);
  await wait(settleMs);
  const ssh = machines.sshProcesses();
  if (ssh.length !== hosts) throw new Error(`${ssh.length} ssh run for ${hosts} hosts`);
  const used = () => sum([hub.pid, ...ssh].map(cpuMs));
  const idleFrom = used();
  await wait(idleMs);
  const idle = used() - idleFrom;
  const hubMiB = (rssKiB(hub.pid) - before) / 1_024 / hosts;
  const sshMiB = sum(ssh.map(pssKiB)) / 1_024 / hosts;
  const [busyFrom, began] = [cpuMs(hub.pid), performance.now()];
  const posted = await post(remote(), pauseOf(hosts), busyMs);
  const lastedMs = performance.now() - began;
  return {
    ...{ hosts, hubMiB, sshMiB },
    idlePercent: (idle / idleMs / hosts) * 100,
    eventsPerSecond: (posted * hosts * 1_000) / lastedMs,
    busyPercent: ((cpuMs(hub.pid) - busyFrom) / lastedMs / hosts) * 100,
  };
}
