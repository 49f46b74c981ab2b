import { protocolDocument } from '../../appserver/index.ts';
import type { CommandContext } from '../command.ts';
import { exitCodes } from '../exit-codes.ts';
import { portOf } from '../port.ts';
import { warnIfRestricted } from '../restricted.ts';
import { sayGeneratedKey, sayMoved, serve } from '../serve.ts';
import { workspacePath } from '../workspace.ts';

/** `oratorio app-server`: serves until it is stopped. */
export async function run(context: CommandContext): Promise<number> {
  const { options, output, env } = context;
  if (options['print-schema'] === true) {
    output.line(JSON.stringify(protocolDocument(), null, 2));
    return exitCodes.ok.code;
  }
  const port = options['port'];
  const isStdio = options['stdio'] === true;
  const path = workspacePath(context, options['workspace']);
  warnIfRestricted(context, path);
  return serve({
    workspacePath: path,
    listen: typeof port === 'string' ? { host: '127.0.0.1', port: portOf(port, 'app-server') } : undefined,
    env,
    ...(isStdio && { stdio: { input: process.stdin, output: process.stdout } }),
    onServing: (serving) => {
      // Standard output belongs to the protocol then.
      const say = isStdio ? output.note : output.line;
      say.call(output, `Serving ${serving.workspacePath} at ${serving.baseUrl}`);
      sayMoved(output, serving);
      sayGeneratedKey(output, serving);
    },
  });
}
