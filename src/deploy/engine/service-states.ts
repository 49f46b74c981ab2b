import * as v from 'valibot';
import { defaults } from '../defaults.ts';
import { DeployError } from '../errors.ts';
import type { StackLayout } from '../layout.ts';
import type { ServiceName } from '../stack-plan.ts';
import { readProject } from './compose-project.ts';
import { failureOf, must, type OperationOptions, quietly } from './operation.ts';
import type { Engine, ServiceState } from './types.ts';

/** In the order in which they need each other. */
export const serviceNames: readonly ServiceName[] = ['agent', 'backend', 'webhook-gateway'];

const bindings = v.nullish(
  v.record(v.string(), v.nullish(v.array(v.object({ HostIp: v.string(), HostPort: v.string() })))),
);

const containerSchema = v.object({
  Id: v.string(),
  Name: v.string(),
  Image: v.string(),
  RestartCount: v.optional(v.number(), 0),
  Config: v.object({ Image: v.string(), Labels: v.nullish(v.record(v.string(), v.string())) }),
  State: v.object({
    Status: v.string(),
    ExitCode: v.number(),
    OOMKilled: v.optional(v.boolean(), false),
    StartedAt: v.string(),
    Health: v.nullish(v.object({ Status: v.string() })),
  }),
  HostConfig: v.object({ PortBindings: bindings }),
  NetworkSettings: v.object({ Ports: bindings }),
  Mounts: v.optional(
    v.array(v.object({ Type: v.string(), Name: v.optional(v.string()), Destination: v.string() })),
    [],
  ),
});

export type ContainerFacts = v.InferOutput<typeof containerSchema>;

/** The containers of a stack as the engine describes them, those of one-off commands left out. */
export async function containersOf(
  engine: Engine,
  stack: StackLayout,
  options: OperationOptions = {},
): Promise<ContainerFacts[]> {
  const { name, secrets } = readProject(stack);
  const settings = { ...quietly(options, secrets), timeoutMs: defaults.timeouts.askMs };
  const labels = [`com.docker.compose.project=${name}`, 'com.docker.compose.oneoff=False'];
  const filters = labels.flatMap((label) => ['--filter', `label=${label}`]);
  const listed = await must(
    'Listing the containers of the stack',
    engine.run(['ps', '--all', '--quiet', '--no-trunc', ...filters], settings),
    'engineFailed',
  );
  const ids = listed.stdout.split(/\s+/).filter((id) => id !== '');
  if (ids.length === 0) return [];
  const inspected = await engine.run(['inspect', '--type', 'container', ...ids], settings);
  // A container that has just gone makes the command fail; the others are still described.
  const isGone = inspected.exitCode !== 0 && /no such (?:object|container)/i.test(inspected.stderr);
  if (inspected.exitCode !== 0 && !isGone) throw failureOf('Inspecting the containers', inspected, 'engineFailed');
  return parseContainers(inspected.stdout);
}

/** Reads the state of each container of a service, in the order of `serviceNames`. */
export async function serviceStates(
  engine: Engine,
  stack: StackLayout,
  options: OperationOptions = {},
): Promise<ServiceState[]> {
  const states = (await containersOf(engine, stack, options)).flatMap(stateOf);
  return states.sort((a, b) => serviceNames.indexOf(a.service) - serviceNames.indexOf(b.service));
}

/** The service a container is of, null for one that is not ours. */
export function serviceOf({ Config }: ContainerFacts): ServiceName | null {
  const label = Config.Labels?.['com.docker.compose.service'];
  return serviceNames.find((name) => name === label) ?? null;
}

function stateOf(container: ContainerFacts): ServiceState[] {
  const service = serviceOf(container);
  if (service === null) return [];
  const { State, Config } = container;
  return [
    {
      service,
      container: container.Name.replace(/^\//, ''),
      state: State.Status,
      health: healthOf(State.Health?.Status),
      exitCode: State.ExitCode,
      restarts: container.RestartCount,
      isOutOfMemory: State.OOMKilled,
      image: Config.Image,
      imageId: container.Image.includes(':') ? container.Image : `sha256:${container.Image}`,
      startedAt: startedAtOf(State),
      ports: portsOf(container),
    },
  ];
}

/** Time of the latest start, ISO 8601; null: never, for which engines report the year 1. */
export const startedAtOf = ({ StartedAt }: ContainerFacts['State']): string | null =>
  StartedAt.startsWith('0001-') ? null : new Date(StartedAt).toISOString();

const healths = ['healthy', 'unhealthy', 'starting'] as const;
const healthOf = (status: string | undefined): ServiceState['health'] =>
  healths.find((health) => health === status) ?? 'none';

/** Published ports; for a container that does not run, the configured ones. */
function portsOf({ State, NetworkSettings, HostConfig }: ContainerFacts): ServiceState['ports'] {
  const published = (State.Status === 'running' ? NetworkSettings.Ports : HostConfig.PortBindings) ?? {};
  return Object.entries(published).flatMap(([inside, hosts]) =>
    (hosts ?? []).map(({ HostIp, HostPort }) => ({
      host: HostIp,
      hostPort: Number(HostPort),
      containerPort: Number.parseInt(inside, 10),
    })),
  );
}

function parseContainers(text: string): ContainerFacts[] {
  try {
    return v.parse(v.array(containerSchema), JSON.parse(text));
  } catch (error) {
    const what = v.isValiError(error) ? `${v.getDotPath(error.issues[0])} is not as expected` : 'it is not JSON';
    throw new DeployError(
      'engineFailed',
      `The engine describes its containers in a way that is not understood: ${what}.`,
      null,
      {
        cause: error,
      },
    );
  }
}
