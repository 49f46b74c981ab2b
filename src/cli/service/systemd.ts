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

const unit = 'oratorio-hub.service';

/** A word of a unit file (systemd.syntax): quoted, with its specifiers and variables escaped. @throws CliError */
function word(text: string, { inCommand = false } = {}): string {
  if (/[\n\r\0]/.test(text)) throw new CliError('usage', 'A path with a line break cannot be in a unit file.');
  const escaped = text.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('%', '%%');
  return `"${inCommand ? escaped.replaceAll('$', '$$$$') : escaped}"`;
}

/**
 * Text of the unit. `KillMode=process`: agent servers outlive a Hub that is killed, and the next one adopts them; a stop of the
 * unit sends SIGTERM to the Hub, which ends them in order. A Hub that finds another one ends with 0 and is not restarted.
 */
export const unitText = ({ command, env }: ServiceProgram): string => `[Unit]
Description=Oratorio Hub

[Service]
ExecStart=${command.map((each) => word(each, { inCommand: true })).join(' ')}
${Object.entries(env)
  .map(([name, value]) => `Environment=${word(`${name}=${value}`)}`)
  .join('\n')}
Restart=on-failure
RestartSec=2
KillMode=process
TimeoutStopSec=60

[Install]
WantedBy=default.target
`;

/** User units of systemd. */
export function systemd(place: ManagerPlace): ServiceManager {
  const base = place.env['XDG_CONFIG_HOME'] || join(place.userHome, '.config');
  const file = join(base, 'systemd', 'user', unit);
  const systemctl = new ManagerProgram('systemctl', place);
  const status = async (): Promise<ServiceStatus> => {
    const enabled = await systemctl.ask('--user', 'is-enabled', unit);
    const active = await systemctl.ask('--user', 'is-active', unit);
    return {
      manager: 'systemd',
      file,
      isInstalled: existsSync(file) && enabled.text === 'enabled',
      isActive: active.text === 'active',
    };
  };
  return {
    async install(program) {
      await systemctl.must('--user', 'show-environment');
      mkdirSync(dirname(file), { recursive: true });
      writeFileAtomic(file, unitText(program));
      await systemctl.must('--user', 'daemon-reload');
      await systemctl.must('--user', 'enable', '--now', unit);
      return status();
    },
    async remove() {
      if (!existsSync(file)) return false;
      await systemctl.must('--user', 'disable', unit);
      rmSync(file, { force: true });
      await systemctl.must('--user', 'daemon-reload');
      return true;
    },
    status,
  };
}
