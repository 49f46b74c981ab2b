/** `oratorio service`: the Hub as a program of the user's session. Never here: root, system units. */
import { launchd } from './launchd.ts';
import { type ManagerPlace, noManager, type ServiceManager } from './manager.ts';
import { systemd } from './systemd.ts';

export { propertyList } from './launchd.ts';
export type { ServiceManager, ServiceProgram, ServiceStatus } from './manager.ts';
export { unitText } from './systemd.ts';

/** The service manager of this system. @throws CliError precondition where it is missing */
export function serviceManager(place: ManagerPlace, platform: NodeJS.Platform = process.platform): ServiceManager {
  if (platform === 'darwin') return launchd(place, process.getuid?.() ?? 0);
  if (platform === 'linux') return systemd(place);
  throw noManager(`${platform} has no service manager that Oratorio knows.`);
}
