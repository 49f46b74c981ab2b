import { version } from '../../protocol/index.ts';
import type { CommandContext } from '../command.ts';
import { exitCodes } from '../exit-codes.ts';

/** `oratorio version` */
export async function run({ output }: CommandContext): Promise<number> {
  const { platform, arch } = process;
  if (output.json) output.document({ version, node: process.versions.node, platform: `${platform}-${arch}` });
  output.line(version);
  return exitCodes.ok.code;
}
