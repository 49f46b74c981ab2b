import type { DoctorContext } from '../context.ts';
import { fail, skip, worst } from '../finding.ts';
import type { Finding } from '../types.ts';

/**
 * Backend, agent server and Dashboard are reached from this host only (specification §4.4, rule 4). The ports that the engine
 * publishes decide: a firewall of the host does not protect them.
 */
export async function loopbackOnly(context: DoctorContext): Promise<Finding> {
  const ports = (await context.services()).flatMap(({ service, ports: each }) =>
    service === 'webhook-gateway' ? [] : each.map((port) => ({ service, ...port })),
  );
  if (ports.length === 0) return skip('No container of the stack publishes a port.');
  const open = ports.filter(({ host }) => !isLoopback(host));
  return worst(
    open.map(({ service, host, hostPort }) =>
      fail(
        `Port ${hostPort} of ${service} is open at ${host === '' ? 'every address' : host}`,
        'Publish it at 127.0.0.1 only (docker-compose.yml), then: oratorio server restart',
      ),
    ),
    `${ports.map(({ hostPort }) => hostPort).join(', ')}: on the loopback only.`,
  );
}

/** Whether a port published at `host` can be reached from this host only. An empty `host` means every address. */
export const isLoopback = (host: string): boolean => /^(?:127\.|::1$|\[::1\]$|localhost$)/.test(host);
