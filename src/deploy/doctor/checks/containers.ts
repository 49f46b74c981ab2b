import { randomUUID } from 'node:crypto';
import { checkComposition, checkGateway, type ServiceState } from '../../engine/index.ts';
import { DeployError } from '../../errors.ts';
import { containerPaths, ownershipOf } from '../../files/index.ts';
import type { ServiceName } from '../../stack-plan.ts';
import type { DoctorContext } from '../context.ts';
import { fail, ok, skip, warn, worst } from '../finding.ts';
import { limits } from '../limits.ts';
import type { Finding } from '../types.ts';

const imageVariable: Readonly<Record<ServiceName, string>> = {
  agent: 'ORATORIO_IMAGE',
  backend: 'ORATORIO_IMAGE',
  'webhook-gateway': 'ORATORIO_GATEWAY_IMAGE',
};
const memoryVariable: Readonly<Partial<Record<ServiceName, string>>> = {
  agent: 'ORATORIO_AGENT_MEMORY',
  backend: 'ORATORIO_BACKEND_MEMORY',
};
const restart = 'oratorio server restart';
const logs = (name: ServiceName): string => `oratorio server logs --service ${name}`;

/** The container of a service runs, is healthy, has not been started again and again, and is of the image it should be. */
export async function container(name: ServiceName, context: DoctorContext, signal: AbortSignal): Promise<Finding> {
  const state = await context.service(name);
  if (state === undefined) return fail('There is no container.', `Start the stack: ${restart}`);
  if (state.state !== 'running') return stopped(name, state);
  const findings = [
    health(name, state),
    restarts(name, state),
    memory(name, state),
    await image(name, state, context, signal),
  ];
  return worst(findings, `Running${state.health === 'healthy' ? ', healthy' : ''}, image ${state.image}.`);
}

function stopped(name: ServiceName, { state, exitCode, isOutOfMemory }: ServiceState): Finding {
  const why = isOutOfMemory ? ', out of memory' : state === 'exited' ? `, exit code ${exitCode}` : '';
  return fail(`It is ${state}${why}.`, `${logs(name)} says why; then: ${restart}`);
}

const healths: Readonly<Record<ServiceState['health'], (name: ServiceName) => Finding>> = {
  healthy: () => ok('healthy'),
  none: () => ok('running'),
  starting: () => warn('it is still starting', 'Ask again in a minute.'),
  unhealthy: (name) => fail('it runs and is unhealthy', `${logs(name)} says why.`),
};
const health = (name: ServiceName, { health: kind }: ServiceState): Finding => healths[kind](name);

const restarts = (name: ServiceName, { restarts: count }: ServiceState): Finding =>
  count >= limits.restarts ? warn(`it was started again ${count} times`, `${logs(name)} says why.`) : ok('restarts');

function memory(name: ServiceName, { isOutOfMemory }: ServiceState): Finding {
  const variable = memoryVariable[name];
  const hint = variable === undefined ? 'Give the host more memory.' : `Raise ${variable} in .env, then: ${restart}`;
  return isOutOfMemory ? warn('it ran out of memory', hint) : ok('memory');
}

/** A container keeps the image that it was made of, also after a later write or pull. */
async function image(
  name: ServiceName,
  state: ServiceState,
  context: DoctorContext,
  signal: AbortSignal,
): Promise<Finding> {
  const wanted = context.value(imageVariable[name]);
  if (wanted !== '' && wanted !== state.image) return warn(`it runs ${state.image}, and .env says ${wanted}`, restart);
  const { exitCode, stdout } = await context
    .engine()
    .run(['image', 'inspect', '--format', '{{.Id}}', state.image], context.asking(signal));
  const isOther = exitCode === 0 && idOf(stdout) !== idOf(state.imageId);
  return isOther ? warn(`there is another image called ${state.image} than the one it runs`, restart) : ok('image');
}

const idOf = (text: string): string => text.trim().replace(/^sha256:/, '');

/** Checks that the files of the composition are valid together. */
export const composition = (context: DoctorContext, signal: AbortSignal): Promise<Finding> =>
  accepted(checkComposition(context.engine(), context.layout, { signal }), 'Correct .env or the file that is named.');

/** The gateway takes its file, by the program and the version it runs. */
export const gatewayFile = (context: DoctorContext, signal: AbortSignal): Promise<Finding> =>
  accepted(checkGateway(context.engine(), context.layout, { signal }), gatewayHint(context));

/** A file that was changed by hand is not written again before it is moved away. */
function gatewayHint({ texts: { caddyfile }, layout, gatewayHost }: DoctorContext): string {
  const host = gatewayHost?.ok ? gatewayHost.host.display : 'HOST';
  const enable = `oratorio server webhook enable --public-host ${host}`;
  const isOurs = typeof caddyfile !== 'string' || ownershipOf(caddyfile) === 'ours';
  return isOurs ? enable : `Undo your change, or: mv ${layout.caddyfile} ${layout.caddyfile}.mine && ${enable}`;
}

const accepted = (checked: Promise<void>, hint: string): Promise<Finding> =>
  checked.then(
    () => ok('It is valid.'),
    (error: unknown) => {
      if (!(error instanceof DeployError)) throw error;
      return fail(error.message, error.hint ?? hint);
    },
  );

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

/** Creates a file; fails where there is one already. By the shell, which starts in a fraction of Node's time. */
const write = 'umask 077; set -o noclobber; printf %s "$2" > "$1"';

/** Checks that backend and agent server have the workspace at the same path (specification §4.4, rule 8). */
export async function workspace(context: DoctorContext, signal: AbortSignal): Promise<Finding> {
  const nonce = randomUUID();
  const path = `${containerPaths.workspace}/.oratorio-doctor-${nonce}`;
  try {
    const written = await context.inside('backend', ['sh', '-c', write, 'sh', path, nonce], { signal });
    if (written.exitCode !== 0)
      return fail(
        `The backend cannot write to ${containerPaths.workspace}.`,
        `chown -R ${context.value('ORATORIO_UID')} ${context.layout.workspace}; on a host with SELinux: chcon -R -t container_file_t ${context.layout.workspace}`,
      );
    const seen = await context.inside('agent', ['cat', path], { signal });
    return seen.exitCode === 0 && seen.stdout === nonce
      ? ok(`Both containers have it at ${containerPaths.workspace}.`)
      : fail(
          'The agent server does not read the files of the backend.',
          'Both must mount the same workspace as the same user: oratorio server restart',
        );
  } finally {
    // Also when the check itself was stopped.
    await context.inside('backend', ['rm', '--force', path], { signal: AbortSignal.timeout(limits.askMs) });
  }
}
