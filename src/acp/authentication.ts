import {
  type AuthenticateRequest,
  type AuthMethod,
  type ClientCapabilities,
  RequestError,
} from '@agentclientprotocol/sdk';
import { loadConfig } from '../config/index.ts';

const methodId = 'oratorio-login';
const name = 'Connect a model provider';
const remedy = 'Run oratorio login in a terminal, then try again.';

/** Ways to log in: an editor with a terminal runs this program again, with the question for provider and key. */
export const authMethodsFor = ({ auth }: ClientCapabilities): AuthMethod[] =>
  auth?.terminal
    ? [{ type: 'terminal', id: methodId, name, description: 'Asks for provider, key and model.', args: ['--login'] }]
    : [{ id: methodId, name, description: remedy }];

/** Whether a user has connected a model, or uses one without a key. */
export async function hasModel(home: string, env: Readonly<Record<string, string | undefined>>): Promise<boolean> {
  const { config } = await loadConfig({ home, env });
  const { ApiKey, ApiKeyCommand, EndPoint, Provider, Providers, Agent } = config;
  const isSet = ApiKey !== '' || ApiKeyCommand.length > 0 || EndPoint !== '' || Provider !== undefined;
  return isSet || Object.keys(Providers).length > 0 || Agent.Name !== '';
}

/** Checks a log-in that the user has done in a terminal. @throws RequestError -32000 with the next step, -32602 */
export async function authenticate(
  { methodId: wanted }: AuthenticateRequest,
  isLoggedIn: () => Promise<boolean>,
): Promise<Record<string, never>> {
  if (wanted !== methodId) throw RequestError.invalidParams({ methodId: wanted }, `the only method is ${methodId}`);
  if (!(await isLoggedIn())) throw RequestError.authRequired({ methodId }, remedy);
  return {};
}
