/**
 * Connections to other machines with their own Hub, each over one `ssh` of the user. Called by the Hub. The states are in
 * `machines/host.ts`. Never here: routes, settings, or decisions about remote workspaces, which their own Hub makes.
 */
export { clean } from './clean.ts';
export { remoteAddressIn, requireVersion } from './dial.ts';
export { hostFiles } from './directory.ts';
export { HostFailure, lastLine, nextStep, problemIn, sshFailure, startFailure } from './failure.ts';
export { Fleet, type FleetOptions, HostUnavailableError } from './fleet.ts';
export { FleetLog } from './fleet-log.ts';
export type { Connected, Host, HostSettings } from './host.ts';
export { installCommand, installedProgram, platformCommand, platformIn, receivedWord } from './remote-install.ts';
export { addressCommand, overControl, programWord, type RemoteEnd, sshEnvironment } from './ssh.ts';
export { isNewerVersion } from './version.ts';
