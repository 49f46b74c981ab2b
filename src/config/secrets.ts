import { passwordIn } from '../lib/index.ts';
import type { Config } from './schema.ts';

/** Secrets of a configuration, to remove from texts for people and models. */
export const secretsIn = (config: Config): string[] =>
  [
    config.ApiKey,
    passwordIn(config.EndPoint),
    ...Object.values(config.Providers).flatMap(({ ApiKey, EndPoint, Headers, Proxy: proxy }) => [
      ...[ApiKey, passwordIn(EndPoint), passwordIn(proxy)],
      ...Object.values(Headers),
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
