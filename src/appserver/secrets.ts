import type { Config } from '../config/index.ts';
import type { LaunchDocument } from '../protocol/index.ts';

/** What no log, tool, trace or prompt may hold. @param token of our WebSocket */
export function secretsOf(config: Config, launch: LaunchDocument | undefined, token: string): string[] {
  return [
    token,
    config.ApiKey,
    config.Api.ApiKey,
    config.AgUi.ApiKey,
    config.AppServer.WebSocket.Token,
    config.Tools.Web.SearchApiKey,
    launch?.notificationToken ?? '',
    launch?.adoptionProof ?? '',
    launch?.upstream?.apiKey ?? '',
  ].filter((secret) => secret !== '');
}
