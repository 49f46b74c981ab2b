import { readFile } from 'node:fs/promises';
import { defaults } from '../defaults.ts';
import { DeployError } from '../errors.ts';
import type { StackLayout } from '../layout.ts';
import { imagesOf } from './images.ts';
import { lastLines } from './last-lines.ts';
import { failureOf, type OperationOptions, quietly } from './operation.ts';
import type { Engine } from './types.ts';

/**
 * Has the gateway's file checked by the gateway of the image that will read it, in a container that has no network, no
 * volume and no name, and is gone afterwards. The file goes in by standard input: no mount, so neither SELinux nor a remote engine matters.
 * @throws DeployError gatewayInvalid with the message of the gateway; imageFailed, engineFailed
 */
export async function checkGateway(engine: Engine, stack: StackLayout, options: OperationOptions = {}): Promise<void> {
  const image = imagesOf(stack).get('webhook-gateway');
  if (image === undefined) throw new DeployError('gatewayInvalid', 'The composition has no webhook gateway.', null);
  const input = await readFile(stack.caddyfile).catch((error: NodeJS.ErrnoException) => {
    throw new DeployError('gatewayInvalid', `${stack.caddyfile} cannot be read (${error.code}).`, null, {
      cause: error,
    });
  });
  const settings = { ...quietly(options), timeoutMs: defaults.timeouts.checkMs, input };
  const result = await engine.run(
    ['run', '--rm', '--interactive', '--pull', 'never', ...confinement, '--entrypoint', 'caddy', image, ...validate],
    settings,
  );
  if (result.exitCode === 0) return;
  const problem = /^Error: (.*)$/m.exec(result.stderr)?.[1];
  // The engine itself says 125 to 127.
  if (problem === undefined || result.exitCode >= 125) throw failureOf('Checking the gateway', result, 'engineFailed');
  throw new DeployError('gatewayInvalid', `The gateway does not accept its file: ${lastLines(problem, 1)}`, null);
}

/** The capability is on the program's file: without it, the program does not even start. */
const confinement = [
  ...['--network', 'none', '--read-only', '--cap-drop', 'ALL', '--cap-add', 'NET_BIND_SERVICE'],
  ...['--security-opt', 'no-new-privileges', '--tmpfs', '/tmp'],
  ...['--env', 'XDG_DATA_HOME=/tmp', '--env', 'XDG_CONFIG_HOME=/tmp'],
];

const validate = ['validate', '--config', '-', '--adapter', 'caddyfile'];
