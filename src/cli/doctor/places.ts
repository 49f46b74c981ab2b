import type { Config } from '../../config/index.ts';
import { ContainerPlace, EngineApi, engineSocket, PlaceError, PodPlace } from '../../places/index.ts';
import { type DoctorContext, fail, ok, type Seen, skip, warn } from './finding.ts';

const id = 'machine.containers';

/** Checks the container engine of the user's settings. A failure counts only if containers are the default place. */
export async function places(
  { env, home }: Pick<DoctorContext, 'env' | 'home'>,
  { Place: { Default, Container } }: Config,
): Promise<Seen> {
  const isWanted = Default === 'container';
  const where = 'Place.Container';
  const socket = engineSocket(Container.Engine, env);
  if (socket === undefined) {
    const saw = 'no container engine was found; agent servers run as processes of this machine';
    return isWanted ? fail(id, saw, { where, next: 'Start Docker or Podman' }) : skip(id, saw);
  }
  const problem = await new ContainerPlace(socket, '').check({
    settings: {
      ...{ engine: socket, image: Container.Image, network: Container.Network, allowRoot: Container.AllowRoot },
      ...{ memoryMiB: 0, cpus: 0, pids: 0, mounts: Container.Mounts },
    },
    home,
  });
  if (problem) return (isWanted ? fail : skip)(id, problem.message, { where });
  const { name, version, isRootless } = await new EngineApi(socket).facts();
  const saw = `${name} ${version} at ${socket} has the image ${Container.Image}`;
  if (isRootless) return ok(id, `${saw}; the engine is rootless`);
  return warn(id, `${saw}; access to its socket equals root on this machine`, {
    where: socket,
    next: 'Use a rootless engine',
  });
}

const podsId = 'machine.pods';

/** Checks the cluster of the user's settings; nothing if the settings name no volume for pods. */
export async function pods(
  { env, home }: Pick<DoctorContext, 'env' | 'home'>,
  { Place: { Pod } }: Config,
): Promise<Seen[]> {
  if (Pod.Volumes.length === 0) return [];
  const where = 'Place.Pod';
  const cluster = { kubeconfig: Pod.Kubeconfig, context: Pod.Context, namespace: Pod.Namespace };
  try {
    const place = new PodPlace(cluster, '', { env });
    const settings = { allowRoot: Pod.AllowRoot, image: Pod.Image, volumes: Pod.Volumes };
    const problem = await place.check({ settings, home });
    if (problem) return [skip(podsId, problem.message, { where })];
    const { engine, namespace } = place.cluster;
    return [ok(podsId, `kubernetes ${await place.version()} at ${engine} runs pods in the namespace ${namespace}`)];
  } catch (error) {
    if (error instanceof PlaceError) return [skip(podsId, error.message, { where })];
    throw error;
  }
}
