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

/** Login methods: an editor with a terminal runs this program again, which asks for the provider and the key. */
export const authMethodsFor = ({ auth }: ClientCapabilities): AuthMethod[] =>
  auth?.terminal
    ? [{ type: 'terminal', id: methodId, name, description: 'Asks for provider, key and model.', args: ['--login'] }]
    : [{ id: methodId, name, description: remedy }];

/** Whether the user has connected a model, or uses a model without a key. */
export async function hasModel(home: string, env: Readonly<Record<string, string | undefined>>): Promise<boolean> {
  const { config } = await loadConfig({ home, env });
  const { ApiKey, ApiKeyCommand, EndPoint, Provider, Providers, Agent } = config;
  const isSet = ApiKey !== '' || ApiKeyCommand.length > 0 || EndPoint !== '' || Provider !== undefined;
  return isSet || Object.keys(Providers).length > 0 || Agent.Name !== '';
}

/** Error for a new session after the editor has logged out. */
export const loggedOut = (): RequestError =>
  RequestError.authRequired({ methodId }, 'You are logged out: authenticate first.');

/** Checks that the user has logged in in a terminal. @throws RequestError -32000 with the next step, -32602 */
export async function authenticate(
  { methodId: wanted }: AuthenticateRequest,
  isLoggedIn: () => Promise<boolean>,
): Promise<Record<string, never>> {
  if (wanted !== methodId) throw RequestError.invalidParams({ methodId: wanted }, `the only method is ${methodId}`);
  if (!(await isLoggedIn())) throw RequestError.authRequired({ methodId }, remedy);
  return {};
}
