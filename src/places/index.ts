/**
 * Places: where the agent server of a workspace runs. `local` is a process of this machine, `container` one on a container engine that the
 * user has. The charts know neither: a place gives them a process to follow and to end.
 *
 * Limits: an engine that does not answer leaves its containers unknown, and unknown never leads to a signal or to a second start.
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
export { LocalPlace } from './local-place.ts';
export { type Place, type PlacedProcess, PlaceError, type PlaceProblem } from './place.ts';
export { openRelayPorts, openRelaySockets, type Relay, type RelayedPort, relayDirectory } from './relay.ts';
