import type { Config } from './schema.ts';

/** Secrets of a configuration, to take out of what people and models read. */
export const secretsIn = (config: Config): string[] =>
  [
    config.ApiKey,
    ...Object.values(config.Providers).flatMap(({ ApiKey, Headers }) => [ApiKey, ...Object.values(Headers)]),
    config.Api.ApiKey,
    config.AgUi.ApiKey,
    config.DashBoard.Password,
    ...Object.values(config.Telemetry.Headers),
    config.AppServer.WebSocket.Token,
    config.Tools.Web.SearchApiKey,
    config.Notifications.Ntfy.Token,
  ].filter((secret) => secret !== '');
