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

/** Whether the name of a variable suggests a secret value. */
export const isSecretName = (name: string): boolean => /key|token|secret|password/i.test(name);

/** Secrets in the environment of an external agent, which needs them itself. */
export const agentSecretsIn = ({ Agent }: Config): string[] =>
  Object.entries(Agent.Env).flatMap(([name, value]) => (isSecretName(name) ? [value] : []));

const passwordIn = (url: string): string => (URL.canParse(url) ? decodeURIComponent(new URL(url).password) : '');
