import { connect } from 'node:net';
import { defaults } from '../../defaults.ts';
import type { ServiceState } from '../../engine/index.ts';
import type { DoctorContext } from '../context.ts';
import { fail, ok, worst } from '../finding.ts';
import { limits } from '../limits.ts';
import type { Finding } from '../types.ts';
import { isLoopback } from './ports.ts';

/** Ports 80 and 443 are answered on this host, and by the gateway of this stack (specification §4.4, rule 4). */
export async function listeners(context: DoctorContext, signal: AbortSignal): Promise<Finding> {
  const gateway = await context.service('webhook-gateway');
  const { host, httpPort, httpsPort } = context.gateway;
  const asked = AbortSignal.any([signal, AbortSignal.timeout(limits.askMs)]);
  const findings = await Promise.all(
    [httpPort, httpsPort].map(async (port, at) => {
      const inside = defaults.gatewayPorts[at] ?? port;
      return findingOf(port, publishedAt(gateway, inside), await isAnswered(host, port, asked));
    }),
  );
  return worst(findings, `The gateway listens on ${httpPort} and ${httpsPort}.`);
}

/** Where others reach this port of the gateway. */
const publishedAt = (gateway: ServiceState | undefined, containerPort: number): boolean =>
  (gateway?.ports ?? []).some((each) => each.containerPort === containerPort && !isLoopback(each.host));

function findingOf(port: number, isOurs: boolean, isAnswered: boolean): Finding {
  if (isOurs && isAnswered) return ok(String(port));
  if (isOurs)
    return fail(`No server answers on port ${port}`, 'oratorio server restart; then check the firewall of this host.');
  return isAnswered
    ? fail(
        `Port ${port} is answered by something else than the gateway`,
        'Stop that program, then: oratorio server restart',
      )
    : fail(`No process listens on port ${port}`, 'Start the gateway: oratorio server restart');
}

function isAnswered(host: string, port: number, signal: AbortSignal): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host, port, signal });
    const finish = (answered: boolean) => (): void => {
      socket.destroy();
      resolve(answered);
    };
    socket.once('connect', finish(true));
    socket.once('error', finish(false));
  });
}
