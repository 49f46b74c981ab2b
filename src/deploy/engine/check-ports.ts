import * as v from 'valibot';
import { defaults } from '../defaults.ts';
import { DeployError } from '../errors.ts';
import type { StackLayout } from '../layout.ts';
import type { ServiceName } from '../stack-plan.ts';
import { tryPort } from './bind-port.ts';
import { holderOf, isInTheWay, type Listener, listeners } from './listeners.ts';
import { must, type OperationOptions, quietly } from './operation.ts';
import { serviceStates } from './service-states.ts';
import type { Engine } from './types.ts';

export interface PortsWanted {
  readonly ports: readonly number[];
  readonly host: '127.0.0.1' | '*';
  /** Service that will publish them; a port that it publishes already counts as free. */
  readonly service: ServiceName;
}

/** A port that another process or container uses. `holder` is null when it is unknown. */
export interface TakenPort {
  readonly port: number;
  readonly holder: string | null;
}

/**
 * Which of the ports are in use by others. By three witnesses: the engine, whose published ports need not be
 * sockets; the kernel's list; and the attempt to have the port, where we may.
 */
export async function takenPorts(
  engine: Engine,
  stack: StackLayout,
  { ports, host, service }: PortsWanted,
  options: OperationOptions = {},
): Promise<TakenPort[]> {
  const states = await serviceStates(engine, stack, options);
  const containers = states.filter((state) => state.service === service);
  // An ended container publishes nothing: another program may have its port.
  const own = containers.filter(({ state }) => !isOver.has(state)).flatMap((state) => state.ports);
  const ownNames = new Set(containers.map(({ container }) => container));
  const open = ports.filter((port) => !own.some(({ hostPort }) => hostPort === port));
  if (open.length === 0) return [];
  const [published, sockets] = await Promise.all([publishedPorts(engine, host, options), listeners()]);
  const taken: TakenPort[] = [];
  for (const port of open) {
    const found = await look(port, host, foreignHolder(published.get(port), ownNames), sockets);
    if (found !== null) taken.push(found);
  }
  return taken;
}

const isOver: ReadonlySet<string> = new Set(['created', 'exited', 'dead']);

/** The engine lists a container of ours that is about to be replaced, between two of its restarts, too. */
const foreignHolder = (holder: string | undefined, own: ReadonlySet<string>): string | null =>
  holder === undefined || own.has(holder) ? null : holder;

/** @throws DeployError portTaken that names every port and, where it can, who holds it */
export async function checkPorts(
  engine: Engine,
  stack: StackLayout,
  wanted: PortsWanted,
  options: OperationOptions = {},
): Promise<void> {
  const taken = await takenPorts(engine, stack, wanted, options);
  if (taken.length === 0) return;
  const list = taken.map(({ port, holder }) => `port ${port} is used by ${holder ?? 'another program'}`).join(', ');
  const numbers = taken.map(({ port }) => port);
  throw new DeployError(
    'portTaken',
    `${list.charAt(0).toUpperCase()}${list.slice(1)}.`,
    `End it, or give it another port. To see who it is: sudo ss -ltnp '( ${numbers.map((port) => `sport = :${port}`).join(' or ')} )'`,
  );
}

/** The first port from `from` on that is free on the loopback and not in `except`. @throws DeployError portTaken when all are taken */
export async function firstFreePort(from: number, except: ReadonlySet<number> = new Set()): Promise<number> {
  const sockets = new Set(
    (await listeners()).filter((socket) => isInTheWay(socket, '127.0.0.1')).map(({ port }) => port),
  );
  for (let port = from; port <= 65_535; port++) {
    if (except.has(port) || sockets.has(port)) continue;
    if ((await tryPort(port, '127.0.0.1')) === 'free') return port;
  }
  throw new DeployError('portTaken', `No port from ${from} on is free on 127.0.0.1.`);
}

async function look(
  port: number,
  host: PortsWanted['host'],
  container: string | null,
  sockets: readonly Listener[],
): Promise<TakenPort | null> {
  if (container !== null) return { port, holder: `container ${container}` };
  const inTheWay = sockets.filter((socket) => socket.port === port && isInTheWay(socket, host));
  const state = await tryPort(port, host);
  // A listener on all IPv6 addresses does not always block IPv4: the attempt decides.
  if (state === 'free' || (state === 'unknown' && inTheWay.length === 0)) return null;
  return { port, holder: await holderOf(new Set(inTheWay.map(({ inode }) => inode))) };
}

const publisherSchema = v.object({ Names: v.string(), Ports: v.string() });

/** Host port → container, of everything that runs and publishes on an address that is in the way. */
async function publishedPorts(
  engine: Engine,
  host: PortsWanted['host'],
  options: OperationOptions,
): Promise<ReadonlyMap<number, string>> {
  const settings = { ...quietly(options), timeoutMs: defaults.timeouts.askMs };
  const asked = engine.run(['ps', '--format', '{"Names":{{json .Names}},"Ports":{{json .Ports}}}'], settings);
  const { stdout } = await must('Listing published ports', asked, 'engineFailed');
  const lines = stdout.split('\n').filter((line) => line.trim() !== '');
  return new Map(lines.flatMap((line) => portsIn(v.parse(publisherSchema, JSON.parse(line)), host)));
}

/** `0.0.0.0:80-81->80-81/tcp, :::443->443/tcp, 5087/tcp` */
function portsIn(
  { Names, Ports }: v.InferOutput<typeof publisherSchema>,
  host: PortsWanted['host'],
): [number, string][] {
  const found = [...Ports.matchAll(/([^\s,]+):(\d+)(?:-(\d+))?->[\d-]+\/tcp/g)];
  return found.flatMap(([, address = '', first = '', last = first]) => {
    const isMeant = host === '*' || ['127.0.0.1', '0.0.0.0', '::', '[::]'].includes(address);
    const count = isMeant ? Number(last) - Number(first) + 1 : 0;
    return Array.from({ length: count }, (_, at): [number, string] => [Number(first) + at, Names]);
  });
}
