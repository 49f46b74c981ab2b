import type { Config } from '../config/index.ts';
import type { LaunchDocument } from '../protocol/index.ts';

/**
 * Secrets that must not reach a log, tool, trace or prompt.
 *
 * @param tokens of the WebSocket and the dashboard, and the generated key
 */
export function secretsOf(config: Config, launch: LaunchDocument | undefined, tokens: readonly string[]): string[] {
  return [
    ...tokens,
    config.ApiKey,
    ...Object.values(config.Providers).flatMap(({ ApiKey, Headers }) => [ApiKey, ...Object.values(Headers)]),
    config.Api.ApiKey,
    config.AgUi.ApiKey,
    config.DashBoard.Password,
    ...Object.values(config.Telemetry.Headers),
    config.AppServer.WebSocket.Token,
    config.Tools.Web.SearchApiKey,
    launch?.notificationToken ?? '',
    launch?.adoptionProof ?? '',
    launch?.upstream?.apiKey ?? '',
  ].filter((secret) => secret !== '');
}
