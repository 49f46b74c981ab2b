import { existsSync, mkdirSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { writeFileAtomic } from '../../lib/index.ts';
import { CliError } from '../errors.ts';
import {
  type ManagerPlace,
  ManagerProgram,
  type ServiceManager,
  type ServiceProgram,
  type ServiceStatus,
} from './manager.ts';

const label = 'dev.oratorio.hub';

const entities: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;' };

/** @throws CliError for a control character, which XML cannot hold */
function string(text: string): string {
  if (/\p{Cc}/u.test(text))
    throw new CliError('usage', 'A path with a control character cannot be in a property list.');
  return `<string>${text.replace(/[&<>]/g, (sign) => entities[sign] ?? sign)}</string>`;
}

/** Text of the property list. `AbandonProcessGroup`: agent servers outlive a Hub that is killed, and the next one adopts them. */
export const propertyList = ({ command, env }: ServiceProgram): string => `<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0">
<dict>
  <key>Label</key>
  ${string(label)}
  <key>ProgramArguments</key>
  <array>
${command.map((each) => `    ${string(each)}`).join('\n')}
  </array>
  <key>EnvironmentVariables</key>
  <dict>
${Object.entries(env)
  .map(([name, value]) => `    <key>${name}</key>\n    ${string(value)}`)
  .join('\n')}
  </dict>
  <key>RunAtLoad</key>
  <true/>
  <key>KeepAlive</key>
  <dict>
    <key>SuccessfulExit</key>
    <false/>
  </dict>
  <key>AbandonProcessGroup</key>
  <true/>
</dict>
</plist>
`;

/** User agents of launchd. */
export function launchd(place: ManagerPlace, uid: number): ServiceManager {
  const file = join(place.userHome, 'Library', 'LaunchAgents', `${label}.plist`);
  const domain = `gui/${uid}`;
  const launchctl = new ManagerProgram('launchctl', place);
  const status = async (): Promise<ServiceStatus> => {
    const printed = await launchctl.ask('print', `${domain}/${label}`);
    return {
      manager: 'launchd',
      file,
      isInstalled: existsSync(file) && printed.isOk,
      isActive: printed.isOk && /\bstate = running\b/.test(printed.text),
    };
  };
  return {
    async install(program) {
      mkdirSync(dirname(file), { recursive: true });
      writeFileAtomic(file, propertyList(program));
      // A service of an earlier installation is still loaded with its old content.
      await launchctl.ask('bootout', `${domain}/${label}`);
      await launchctl.must('bootstrap', domain, file);
      return status();
    },
    async remove() {
      if (!existsSync(file)) return false;
      await launchctl.ask('bootout', `${domain}/${label}`);
      rmSync(file, { force: true });
      return true;
    },
    status,
  };
}
