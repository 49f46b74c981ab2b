import type { Config } from './schema.ts';

/** Secrets of a configuration, to remove from texts for people and models. */
export const secretsIn = (config: Config): string[] =>
  [
    config.ApiKey,
    ...Object.values(config.Providers).flatMap(({ ApiKey, Headers, Proxy: proxy }) => [
      ApiKey,
      ...Object.values(Headers),
      passwordIn(proxy),
    ]),
    passwordIn(config.Proxy),
    config.Api.ApiKey,
    config.AgUi.ApiKey,
    config.DashBoard.Password,
    ...Object.values(config.Telemetry.Headers),
    config.AppServer.WebSocket.Token,
    config.Tools.Web.SearchApiKey,
    config.Notifications.Ntfy.Token,
  ].filter((secret) => secret !== '');

const passwordIn = (url: string): string => (URL.canParse(url) ? decodeURIComponent(new URL(url).password) : '');
