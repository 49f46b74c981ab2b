/**
 * Places where the agent server of a workspace runs. `local` is a process of this machine; `container` is a container of the user's
 * engine; `pod` is a bare pod of the user's Kubernetes cluster. The statecharts do not depend on the place: each place gives them a process to follow and to end.
 *
 * While an engine or a cluster does not answer, the state of its containers is unknown. An unknown state never causes a signal or a second start.
 */
export {
  ContainerPlace,
  type ContainerSearch,
  type ContainerStart,
  containerHandle,
} from './container-place.ts';
export { type ContainerSettings, checkedMount, commonGitDirectory, containerSpec } from './container-spec.ts';
export { devcontainerImage } from './devcontainer.ts';
export { EngineApi, type EngineFacts } from './engine-api.ts';
export { engineSocket } from './engine-socket.ts';
export { kubeconfigFile } from './kube-config.ts';
export { LocalPlace } from './local-place.ts';
export { type Place, type PlacedProcess, PlaceError, type PlaceProblem, type ReachListener } from './place.ts';
export { PodPlace, podHandle } from './pod-place.ts';
export type { PlaceSettings, PodSettings } from './pod-spec.ts';
export {
  joinSockets,
  openRelayPorts,
  openRelaySockets,
  type Relay,
  type RelayedPort,
  relayDirectory,
} from './relay.ts';
