import { engineOnce, type ServiceState, type StackStatus, stackStatus } from '../../deploy/index.ts';
import type { CommandContext } from '../command.ts';
import { exitCodes } from '../exit-codes.ts';
import { pairs } from '../render.ts';
import { stackDirectory } from '../server/given.ts';
import { tunnelTarget } from '../server/steps-after.ts';

/** `oratorio server status`: containers, backend, gateway and the last changes of a stack. */
export async function run(context: CommandContext): Promise<number> {
  const { output, signal } = context;
  const engine = await engineOnce(context)();
  const status = await stackStatus(stackDirectory(context), engine, { signal, ...tunnelTarget() });
  if (output.json) output.document(status);
  else for (const line of lines(status, context)) output.line(line);
  return status.isHealthy ? exitCodes.ok.code : exitCodes.unhealthy.code;
}

function lines(status: StackStatus, { output }: CommandContext): readonly string[] {
  const { bold, dim } = output.colors;
  const { backend, ingress, changes, busy } = status;
  return [
    bold(status.directory),
    ...status.services.map((service) => serviceLine(service, output.colors)),
    ...status.missing.map((name) => `${output.colors.red('✖')} ${name.padEnd(16)} there is no container of it`),
    ...pairs(
      [
        ['backend', backend.state === 'answers' ? `${status.url}, version ${backend.status.version}` : backend.problem],
        ['webhook', ingress.isEnabled ? (ingress.url ?? 'enabled') : 'disabled'],
        ['tunnel', status.tunnel],
        ...(busy ? [['at work', `oratorio server ${busy.command}, process ${busy.pid}`] as const] : []),
      ],
      output.colors,
    ),
    ...changes.map(({ command, at, outcome }) => dim(`${at}  ${command}: ${outcome}`)),
  ];
}

function serviceLine(service: ServiceState, { green, red, yellow, dim }: CommandContext['output']['colors']): string {
  const { state, health, restarts, image, imageId, startedAt, ports, isOutOfMemory } = service;
  const isRunning = state === 'running';
  const sign = !isRunning || health === 'unhealthy' ? red('✖') : health === 'starting' ? yellow('!') : green('✓');
  const published = ports.map(({ host, hostPort, containerPort }) => `${host}:${hostPort}→${containerPort}`).join(' ');
  const facts = [
    health === 'none' ? state : `${state}, ${health}`,
    ...(restarts > 0 ? [`${restarts} restarts`] : []),
    ...(isOutOfMemory ? ['was out of memory'] : []),
    ...(startedAt === null ? [] : [`since ${startedAt.slice(0, 19)}Z`]),
  ];
  return `${sign} ${service.service.padEnd(16)} ${facts.join(', ')}  ${dim(`${shortImage(image, imageId)} ${published}`)}`;
}

/** Short name of an image, or its short id if it has no name. */
const shortImage = (image: string, id: string): string =>
  image.startsWith('sha256:') ? id.slice(0, 19) : image.replace(/(@sha256:\w{12})\w*$/, '$1');
