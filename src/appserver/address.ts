import { randomBytes } from 'node:crypto';
import type { Config } from '../config/index.ts';
import { isLoopback, type ListenAddress } from '../lib/index.ts';
import type { LaunchDocument } from '../protocol/index.ts';
import { StartupError } from './startup-error.ts';

/** Address of the WebSocket, and the token that opens it. */
export interface ServingAddress extends ListenAddress {
  readonly token: string;
}

/** The Hub's word, else the command line's, else the configuration's. @throws StartupError (config) */
export function addressOf(
  config: Config,
  {
    launch,
    listen: asked,
  }: { readonly launch?: LaunchDocument | undefined; readonly listen?: ListenAddress | undefined },
): ServingAddress {
  if (launch) return launch.services.appServerWebSocket;
  const { Host, Port, Token } = config.AppServer.WebSocket;
  const { host, port } = asked ?? { host: Host, port: Port };
  if (!isLoopback(host) && Token === '') {
    throw new StartupError(
      'config',
      `AppServer.WebSocket.Token must be set to listen on ${host}, which others can reach`,
    );
  }
  return { host, port, token: Token || randomBytes(32).toString('base64url') };
}
