/**
 * Operations of `oratorio server` on a container engine: finds one with a composition tool, runs both without revealing a secret,
 * and manages the services and images of a stack. Called while a plan is applied, by the doctor and by read-only commands.
 * Every operation can be repeated; every failure is a `DeployError` with a hint.
 *
 * Never here: choice and order of steps (`plan`, `apply`), the text of files (`files`), a prompt.
 */
export { type AwaitOptions, awaitHealthy, UnhealthyError } from './await-healthy.ts';
export {
  buildImageArguments,
  imageOrigin,
  isOurNode,
  nodeVersionArguments,
  prepareContext,
} from './build-image.ts';
export { checkComposition } from './check-composition.ts';
export { checkGateway } from './check-gateway.ts';
export { checkPorts, firstFreePort, type PortsWanted, type TakenPort, takenPorts } from './check-ports.ts';
export { childEnvironment, type Environment, overridesOf } from './child-environment.ts';
export { type ComposeProject, readProject } from './compose-project.ts';
export { engineOf, type FoundEngine } from './engine.ts';
export { isAtLeast, versionIn } from './find-compose.ts';
export { type FindOptions, findEngine } from './find-engine.ts';
export { followLogs, type LogOptions } from './follow-logs.ts';
export { imagesOf } from './images.ts';
export { lastLines } from './last-lines.ts';
export { printable } from './lines.ts';
export { portHolder } from './listeners.ts';
export { must, type OperationOptions } from './operation.ts';
export { type PinnedImage, pinImage } from './pin-image.ts';
export { hasImage, type PullResult, pullImage, pullImages } from './pull-images.ts';
export { outputRedactorFor, type Redactor } from './redactor.ts';
export { removeServices } from './remove-services.ts';
export { type ProgramCall, runProgram } from './run.ts';
export { restoreState, saveState } from './save-state.ts';
export { lastLog } from './service-logs.ts';
export { serviceNames, serviceStates } from './service-states.ts';
export { type StartOptions, startServices } from './start-services.ts';
export type { Engine, RunOptions, RunResult, ServiceState } from './types.ts';
