import type { ServiceState } from '../../engine/index.ts';
import type { ServiceName } from '../../stack-plan.ts';
import type { DoctorContext } from '../context.ts';
import { fail, ok, warn, worst } from '../finding.ts';
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
