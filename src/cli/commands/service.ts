/** `oratorio service …`: the Hub starts with the user's session. Each function is one command. */

import { stablePackageRoot, userHome } from '../../lib/index.ts';
import type { CommandContext } from '../command.ts';
import { exitCodes } from '../exit-codes.ts';
import { pairs } from '../render.ts';
import { type ServiceManager, type ServiceStatus, serviceManager } from '../service/index.ts';
import { hubCommandAt } from '../update/index.ts';

const managerOf = ({ env, signal }: CommandContext): ServiceManager =>
  serviceManager({ userHome: userHome(env), env, signal });

export async function install(context: CommandContext): Promise<number> {
  const { output, home, env } = context;
  const { command, args } = hubCommandAt(stablePackageRoot());
  const status = await managerOf(context).install({
    command: [command, ...args],
    env: { ORATORIO_HOME: home, ...(env['PATH'] && { PATH: env['PATH'] }) },
  });
  if (output.json) output.document(status);
  else {
    output.line(`${output.colors.green('✔')} The Hub starts at log-in`);
    show(context, status);
  }
  return exitCodes.ok.code;
}

export async function remove(context: CommandContext): Promise<number> {
  const { output } = context;
  const wasThere = await managerOf(context).remove();
  if (output.json) output.document({ removed: wasThere });
  else
    output.line(
      wasThere
        ? 'The Hub no longer starts at log-in. One that runs continues: oratorio hub stop ends it.'
        : 'The Hub does not start at log-in: nothing was removed.',
    );
  return exitCodes.ok.code;
}

export async function status(context: CommandContext): Promise<number> {
  const found = await managerOf(context).status();
  if (context.output.json) context.output.document(found);
  else show(context, found);
  return exitCodes.ok.code;
}

function show({ output }: CommandContext, { manager, file, isInstalled, isActive }: ServiceStatus): void {
  const rows = [
    ['at log-in', isInstalled ? 'yes' : 'no: oratorio service install'],
    ['now', isActive ? 'running as a service' : 'not running as a service'],
    [manager, file],
  ] as const;
  for (const line of pairs(rows, output.colors)) output.line(line);
}
