import { AgentError } from '../agent/index.ts';
import type { Logger } from '../log/index.ts';
import type { McpServerSettings } from '../protocol/index.ts';
import { McpFailure } from './failure.ts';
import { beginLogin, endLogin, type Login } from './oauth/index.ts';

export interface UserLoginsOptions {
  readonly home: string;
  readonly logger: Logger;
}

/** Log-in of the user that has not ended. */
interface UserLogin {
  readonly ending: AbortController;
  /** Absent: the authorization server is being asked. */
  login?: Login;
  /** Resolves at the end, with the problem of a failed log-in. */
  problem?: Promise<string | undefined>;
}

/** Log-ins of the user in progress, one for each server. */
export class UserLogins {
  readonly #options: UserLoginsOptions;
  readonly #logins = new Map<string, UserLogin>();

  constructor(options: UserLoginsOptions) {
    this.#options = options;
  }

  /**
   * Begins a log-in; an earlier one at this server ends.
   *
   * @returns address for a browser on this machine
   * @throws AgentError `mcpLoginFailed`
   */
  async begin(name: string, settings: McpServerSettings): Promise<string> {
    this.#logins.get(name)?.ending.abort();
    const ending = new AbortController();
    const begun: UserLogin = { ending };
    this.#logins.set(name, begun);
    try {
      const login = await beginLogin({ home: this.#options.home, settings, signal: ending.signal });
      begun.login = login;
      begun.problem = this.#finish(name, login, begun);
      return login.url;
    } catch (error) {
      if (!(error instanceof McpFailure)) throw error;
      throw loginFailed(name, error.message);
    }
  }

  /** Completes a log-in with the last address of its browser. A wrong address changes nothing. @throws AgentError `mcpLoginFailed` */
  async complete(name: string, redirect: string): Promise<string> {
    const begun = this.#logins.get(name);
    if (!begun?.login) throw loginFailed(name, 'No log-in is in progress: start it again.');
    const problem = begun.login.paste(redirect) ?? (await begun.problem);
    if (problem !== undefined) throw loginFailed(name, problem);
    return begun.login.url;
  }

  /** Ends the log-in at a server, in progress or complete. */
  async logout(name: string, settings: McpServerSettings): Promise<void> {
    this.#logins.get(name)?.ending.abort();
    await endLogin(this.#options.home, settings);
  }

  close(): void {
    for (const { ending } of this.#logins.values()) ending.abort();
  }

  /** @returns the problem of a failed log-in */
  async #finish(name: string, login: Login, begun: UserLogin): Promise<string | undefined> {
    const { logger } = this.#options;
    try {
      await login.finished();
      logger.info('the user has logged in to an MCP server', { server: name });
      return undefined;
    } catch (error) {
      if (!begun.ending.signal.aborted) logger.warn('a log-in at an MCP server has failed', { server: name, error });
      return error instanceof McpFailure ? error.message : 'The log-in was ended.';
    } finally {
      if (this.#logins.get(name) === begun) this.#logins.delete(name);
    }
  }
}

const loginFailed = (name: string, problem: string): AgentError =>
  new AgentError('mcpLoginFailed', { name, problem }, problem);
