import { realpathSync } from 'node:fs';
import { compareVersions, packageRoot } from '../../lib/index.ts';
import { version } from '../../protocol/index.ts';
import type { CommandContext } from '../command.ts';
import { CliError, quoted } from '../errors.ts';
import { exitCodes } from '../exit-codes.ts';
import {
  addressOption,
  findRelease,
  type Installation,
  installationAt,
  installRelease,
  type OwnInstallation,
  releaseAddress,
  releasedAddress,
} from '../update/index.ts';

/** `oratorio self-update` */
export async function run(context: CommandContext): Promise<number> {
  const { output, options, signal } = context;
  const root = realpathSync(packageRoot());
  const installation = own(installationAt(root));
  const from = addressOption(context);
  const directory = releaseAddress(from ?? installation.source ?? releasedAddress());
  const found = await findRelease(directory, root, signal);
  const order = compareVersions(found.version, version);
  const command = ['oratorio self-update', ...(from === undefined ? [] : ['--from', quoted(from)])].join(' ');
  const facts = { installed: version, found: found.version, isSigned: found.isSigned };
  if (options['check'] === true) {
    output.line(order > 0 ? `Oratorio ${found.version} is there: ${command}` : newest(found.version, order));
    if (output.json) output.document({ ...facts, isNewer: order > 0 });
    return exitCodes.ok.code;
  }
  if (order < 0 && options['allow-older'] !== true) {
    const problem = `The release has Oratorio ${found.version}, which is older than ${version}.`;
    throw new CliError('precondition', problem, `To install it: ${command} --allow-older`, 'olderRelease', facts);
  }
  const isReplaced = order !== 0 && (await installRelease(context, installation, directory, found));
  if (output.json) output.document({ ...facts, isUpdated: order !== 0, isHubReplaced: isReplaced });
  else if (order === 0) output.line(newest(version, order));
  else report(context, found.version, isReplaced);
  return exitCodes.ok.code;
}

const newest = (found: string, order: number): string =>
  order === 0 ? `Oratorio ${found} is up to date.` : `Oratorio ${version} is newer than the release, ${found}.`;

function report({ output }: CommandContext, found: string, isReplaced: boolean): void {
  output.line(`${output.colors.green('✔')} Oratorio ${found} is in use; it was ${version}`);
  if (isReplaced)
    output.line('  The Hub was replaced. Agent servers restart when they are idle; their turns continue.');
}

/** @throws CliError for an installation that another program updates */
function own(installation: Installation): OwnInstallation {
  if (installation.kind === 'own') return installation;
  const { by, update } = installation;
  throw new CliError(
    'precondition',
    `Oratorio was installed by ${by}.`,
    `Update it: ${update}`,
    'foreignInstallation',
    { by, update },
  );
}
