import * as v from 'valibot';
import type { HostRefusal } from '../../../machines/index.ts';
import type { HostAnswer, HubClient } from '../../client/index.ts';
import { HostFailure, installedProgram, isNewerVersion, nextStep } from '../../hosts/index.ts';
import { count } from '../../lib/index.ts';
import { HostName, RemoteProgram, SshTarget, version } from '../../protocol/index.ts';
import type { CommandContext } from '../command.ts';
import { usageError } from '../errors.ts';
import { exitCodes } from '../exit-codes.ts';
import { during, withHub } from '../hub.ts';
import { hostNamed, notConnected } from '../remote.ts';
import { checkHost, hostRefused, type RequestedHost } from '../remote-check.ts';
import { installOnHost } from '../remote-install.ts';
import { columns, inLine } from '../render.ts';
import { ageOf } from '../workspace-table.ts';

const heading = ['NAME', 'STATE', 'VERSION', 'WORKSPACES', 'WAITING', 'SINCE', 'SSH'];
const nothing = '–';
/** Time limit of `add` and `enable` for the connection. */
const connectMs = 60_000;

/** `oratorio hosts` */
export async function list(context: CommandContext): Promise<number> {
  const { output, signal } = context;
  return withHub(context, async ({ hub }) => {
    const hosts = await hub.hosts({ signal });
    if (output.json) output.document(hosts);
    else if (hosts.length === 0) output.note('No hosts yet. Add one: oratorio hosts add ssh://me@box');
    else show(hosts, context);
    return exitCodes.ok.code;
  });
}

function show(hosts: readonly HostAnswer[], { output }: CommandContext): void {
  const now = Date.now();
  const rows = hosts.map((host) => [
    ...[host.name, stateOf(host), host.version ?? nothing, String(host.workspaces), String(host.waiting)].map(inLine),
    ...[ageOf(host.since, now), inLine(host.ssh)],
  ]);
  if (!output.isTTY) {
    for (const row of rows) output.line(row.join('\t'));
    return;
  }
  for (const line of columns(heading, rows, output)) output.line(line);
  for (const host of hosts) for (const line of hostNotes(host)) output.line(output.colors.dim(line));
}

/** `refused (hostKey)` */
const stateOf = ({ state, phase }: HostAnswer): string =>
  state === 'refused' ? `${state} (${phase.split('.')[1] ?? ''})` : state;

function hostNotes({ name, state, reason, next, asOf }: HostAnswer): string[] {
  if (state !== 'refused' && state !== 'unreachable') return [];
  const seen = asOf === null ? '' : ` Workspaces as of ${asOf}.`;
  return [`  ${name}: ${inLine(reason ?? '')}${seen}`, ...(next === null ? [] : [`  → ${inLine(next)}`])];
}

/** Derives the name of a host from its address; undefined if the address gives no valid name. */
function nameIn(ssh: string): string | undefined {
  const machine = new URL(ssh).hostname.toLowerCase().split('.')[0] ?? '';
  const name = machine.replace(/[^a-z0-9-]+/g, '-').slice(0, 32);
  return v.is(HostName, name) ? name : undefined;
}

/** `oratorio hosts add` */
export async function add(context: CommandContext): Promise<number> {
  const { argument, options } = context;
  const ssh = v.safeParse(SshTarget, argument);
  if (!ssh.success) throw usageError('hosts add needs an address such as ssh://me@box or ssh://box:2222', 'hosts add');
  const name = v.safeParse(HostName, options['name'] ?? nameIn(ssh.output));
  if (!name.success) throw usageError(`--name must be ${name.issues[0].message}.`, 'hosts add');
  const program = v.safeParse(RemoteProgram, options['program'] ?? 'oratorio');
  if (!program.success) throw usageError(`--program must be ${program.issues[0].message}.`, 'hosts add');
  if (options['install'] !== true && (options['from'] !== undefined || options['yes'] === true))
    throw usageError('--from and --yes work only with --install.', 'hosts add');
  const host = await reached(context, { name: name.output, ssh: ssh.output, program: program.output });
  return withHub(context, async ({ hub }) => settled(context, hub, host.name, () => hub.addHost(host)));
}

/** Finds the program on the machine, and installs it if the user wants that. @throws CliError for a host that is refused */
async function reached(context: CommandContext, host: RequestedHost): Promise<RequestedHost> {
  const { options, signal } = context;
  const installed = { ...host, program: installedProgram };
  const check = (each: RequestedHost) => during(context, `Asking ${each.ssh}`, () => checkHost(context, each));
  let found = { host, version: await check(host) };
  if (options['program'] === undefined && isRefused(found.version, 'noProgram')) {
    const version = await check(installed);
    if (!isRefused(version, 'noProgram')) found = { host: installed, version };
  }
  const canInstall = isRefused(found.version, 'noProgram') || isOlder(found.version);
  try {
    if (options['install'] === true && canInstall) await installOnHost(context, host.ssh);
    else if (found.version instanceof HostFailure) throw found.version;
    else return found.host;
  } catch (error) {
    signal.throwIfAborted();
    throw error instanceof HostFailure ? hostRefused(error, found.host) : error;
  }
  return installed;
}

const isRefused = (found: HostFailure | string, refusal: HostRefusal): found is HostFailure =>
  found instanceof HostFailure && found.refusal === refusal;

/** Whether the host was refused for a version that this version can replace. */
const isOlder = (found: HostFailure | string): boolean =>
  isRefused(found, 'version') && !isNewerVersion(found.remoteVersion);

/** Changes a host, then waits until it is connected or the connection has failed. */
async function settled(
  context: CommandContext,
  hub: HubClient,
  name: string,
  change: () => Promise<HostAnswer>,
): Promise<number> {
  const { output, signal } = context;
  const over = AbortSignal.any([signal, AbortSignal.timeout(connectMs)]);
  let open: () => void = () => undefined;
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  const decided = (async () => {
    for await (const { kind, data } of hub.events({ signal: over, onOpen: open }))
      if (kind.startsWith('host.') && data['host'] === name) return;
  })();
  await Promise.race([opened, decided]);
  await change();
  await during(context, `Connecting ${name}`, () => decided);
  const host = await hostNamed(hub, name, context);
  if (host.state !== 'connected') throw notConnected(host);
  if (output.json) output.document(host);
  else
    output.line(
      `${output.colors.green('✔')} ${name} connected: version ${inLine(host.version ?? '')}, ${count(host.workspaces, 'workspace')}`,
    );
  return exitCodes.ok.code;
}

const named = ({ argument }: CommandContext, command: string): string => {
  if (argument !== undefined) return argument;
  throw usageError('The name of a host is missing. List the hosts: oratorio hosts', command);
};

/** `oratorio hosts remove` */
export const remove = (context: CommandContext): Promise<number> => change(context, 'remove', 'Removed');

/** `oratorio hosts disable` */
export const disable = (context: CommandContext): Promise<number> => change(context, 'disable', 'Disabled');

async function change(context: CommandContext, action: 'remove' | 'disable', word: string): Promise<number> {
  const { output, signal } = context;
  const name = named(context, `hosts ${action}`);
  return withHub(context, async ({ hub }) => {
    await hostNamed(hub, name, context);
    const host = await hub.changeHost(name, action, { signal });
    if (output.json) output.document(host);
    else output.line(`${word}: ${name}. Its agents keep running.`);
    return exitCodes.ok.code;
  });
}

/** `oratorio hosts enable` */
export async function enable(context: CommandContext): Promise<number> {
  const name = named(context, 'hosts enable');
  return withHub(context, async ({ hub }) => {
    await hostNamed(hub, name, context);
    return settled(context, hub, name, () => hub.changeHost(name, 'enable'));
  });
}

/** `oratorio hosts doctor` */
export async function doctor(context: CommandContext): Promise<number> {
  const { output } = context;
  const name = named(context, 'hosts doctor');
  return withHub(context, async ({ hub }) => {
    const host = await hostNamed(hub, name, context);
    const found = await during(context, `Asking ${host.ssh}`, () => checkHost(context, host));
    const isFailure = found instanceof HostFailure;
    const problem = isFailure ? { refusal: found.refusal, message: found.message } : null;
    const next = isFailure && found.refusal !== null ? nextStep(found, host) : host.next;
    const isWell = !isFailure && host.state === 'connected';
    if (output.json) output.document({ host, problem, next });
    else {
      const { green, red } = output.colors;
      const line = (isRight: boolean, text: string) =>
        output.line(`${isRight ? green('✔') : red('✖')} ${inLine(text)}`);
      line(
        !isFailure,
        isFailure
          ? found.message
          : `ssh reaches ${host.ssh}; ${host.program} has version ${found} there, ${version} here`,
      );
      line(host.state === 'connected', `The Hub is ${host.state}${host.reason === null ? '' : `: ${host.reason}`}`);
      if (!isWell) output.line(`→ ${inLine(next ?? `Connect again: oratorio hosts enable ${name}`)}`);
    }
    return isWell ? exitCodes.ok.code : exitCodes.unhealthy.code;
  });
}
