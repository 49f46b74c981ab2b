import { createInterface } from 'node:readline';
import {
  beginLogin,
  endLogin,
  type Login,
  LoginFile,
  McpFailure,
  type StoredLogin,
  serverAddress,
  usesLogin,
} from '../../mcp/index.ts';
import { type McpServerSettings, mcpLoginCommand } from '../../protocol/index.ts';
import type { CommandContext } from '../command.ts';
import { CliError, usageError } from '../errors.ts';
import { exitCodes } from '../exit-codes.ts';
import { effective } from '../model/index.ts';
import { openPage } from '../page.ts';
import { columns } from '../render.ts';

/** `oratorio mcp login` */
export async function login(context: CommandContext): Promise<number> {
  const { home, output, signal } = context;
  const { name, settings } = serverOf(context, 'mcp login');
  let begun: Login | undefined;
  try {
    begun = await beginLogin({ home, settings, signal });
    output.note(`Log in to ${name} at ${new URL(begun.issuer).host}:\n  ${begun.url}`);
    if (opensBrowser(context) && !(await openPage(home, begun.url))) {
      output.warn('No browser could be opened: open the address above yourself.');
    }
    output.note(
      'Waiting for the browser; Ctrl-C ends the log-in. If a browser on another machine cannot open its last address, paste that address here.',
    );
    const stored = await withPastedLines(begun, output);
    if (output.json) output.document(viewOf(name, settings, stored));
    output.line(`Logged in to ${name}.`);
    return exitCodes.ok.code;
  } catch (error) {
    signal.throwIfAborted();
    if (!(error instanceof McpFailure)) throw error;
    const hint = error.code === 'misconfigured' ? null : `Try again: ${mcpLoginCommand(name)}`;
    throw new CliError('credentials', `${name}: ${error.message}`, hint, 'mcpLoginFailed');
  } finally {
    await begun?.close();
  }
}

/** Waits for the browser, or for its last address on standard input. Reports a wrong address, then continues to wait. */
async function withPastedLines(begun: Login, output: CommandContext['output']): Promise<StoredLogin> {
  const lines = createInterface({ input: process.stdin, terminal: false });
  lines.on('line', (line) => {
    const problem = line.trim() === '' ? undefined : begun.paste(line);
    if (problem !== undefined) output.warn(problem);
  });
  try {
    return await begun.finished();
  } finally {
    lines.close();
  }
}

const opensBrowser = ({ options, output }: CommandContext): boolean =>
  options['open'] === true || (options['open'] === undefined && output.isTTY);

/** `oratorio mcp logout` */
export async function logout(context: CommandContext): Promise<number> {
  const { home, output, signal } = context;
  const { name, settings } = serverOf(context, 'mcp logout');
  const { wasLoggedIn, isRevoked } = await endLogin(home, settings, signal);
  if (output.json) output.document({ server: name, wasLoggedIn, isRevoked });
  output.line(wasLoggedIn ? `Logged out of ${name}.` : `You are not logged in to ${name}.`);
  if (wasLoggedIn && !isRevoked)
    output.note('The authorization server did not revoke the token: it stays valid until it expires.');
  return exitCodes.ok.code;
}

/** `oratorio mcp status` */
export async function status(context: CommandContext): Promise<number> {
  const { home, output, argument } = context;
  const servers = argument === undefined ? networkServers(context) : [serverOf(context, 'mcp status')];
  const views = servers.map(({ name, settings }) => viewOf(name, settings, fileOf(home, settings)?.read()));
  if (output.json) output.document(views);
  else if (views.length === 0)
    output.line('No HTTP MCP server is configured. Add one to McpServers in your config.json.');
  const rows = views.map(({ server, state, issuer, expiresAt, next }) => [
    server,
    words[state],
    issuer ?? '',
    expiresAt ?? '',
    next ?? '',
  ]);
  if (rows.length > 0) {
    for (const row of columns(['SERVER', 'STATE', 'ISSUER', 'TOKEN UNTIL', 'NEXT'], rows, output)) output.line(row);
  }
  return exitCodes.ok.code;
}

type LoginState = 'loggedIn' | 'loggedOut' | 'ownCredential' | 'program';

const words: Readonly<Record<LoginState, string>> = {
  loggedIn: 'logged in',
  loggedOut: 'no log-in',
  ownCredential: 'has its own credential',
  program: 'is a program',
};

function stateOf(settings: McpServerSettings, stored: StoredLogin | undefined): LoginState {
  if (settings.transport === 'stdio') return 'program';
  if (!usesLogin(settings)) return 'ownCredential';
  return stored ? 'loggedIn' : 'loggedOut';
}

/** Log-in for display, without tokens. */
function viewOf(server: string, settings: McpServerSettings, stored: StoredLogin | undefined) {
  const state = stateOf(settings, stored);
  const { issuer = null, scope = null, expiresAt = null } = stored ?? {};
  return {
    server,
    state,
    ...{ issuer, scope, expiresAt },
    isRenewed: stored?.refreshToken !== undefined,
    next: state === 'loggedOut' ? mcpLoginCommand(server) : null,
  };
}

const fileOf = (home: string, settings: McpServerSettings): LoginFile | undefined =>
  usesLogin(settings) ? new LoginFile(home, serverAddress(settings)) : undefined;

interface NamedServer {
  readonly name: string;
  readonly settings: McpServerSettings;
}

/** @throws CliError for a name that is not in the effective settings */
function serverOf(context: CommandContext, command: string): NamedServer {
  const { argument: name } = context;
  if (name === undefined) throw usageError(`${command} needs the name of a server.`, command);
  const { McpServers: servers } = effective(context).config;
  const settings = Object.hasOwn(servers, name) ? servers[name] : undefined;
  if (settings) return { name, settings };
  const names = Object.keys(servers);
  const hint =
    names.length === 0
      ? 'Add it to McpServers in your config.json. If the workspace defines it, run: oratorio trust'
      : `Known servers: ${names.join(', ')}. Servers of a workspace need trust: oratorio trust`;
  throw new CliError('failure', `There is no MCP server ${name}.`, hint, 'mcpServerNotFound');
}

function networkServers(context: CommandContext): NamedServer[] {
  const { McpServers: servers } = effective(context).config;
  return Object.entries(servers)
    .map(([name, settings]) => ({ name, settings }))
    .filter(({ settings }) => settings.transport === 'streamableHttp');
}
