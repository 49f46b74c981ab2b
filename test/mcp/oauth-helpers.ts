import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import type { Test } from 'tap';
import { beginLogin, LoginFile, type StoredLogin, serverAddress } from '../../src/mcp/index.ts';
import { program, programEnvironment } from '../programs.ts';
import { http, type Room } from './helpers.ts';

/** The MCP server of the official SDK that wants a log-in, with its authorization server, as a process. */
export class GuardedServer {
  readonly url: string;

  private constructor(url: string) {
    this.url = url;
  }

  static async start(t: Test): Promise<GuardedServer> {
    const child = spawn(process.execPath, [program('test/fixtures/mcp/oauth-server.mjs')], {
      env: { ...programEnvironment },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const exited = once(child, 'exit');
    t.teardown(async () => {
      child.kill('SIGKILL');
      await exited;
    });
    const [line] = await once(createInterface(child.stdout), 'line');
    return new GuardedServer(String(line));
  }

  /** Refuses the access tokens from now on; with `revoke` the refresh tokens, too. */
  async control(what: 'expire' | 'revoke'): Promise<void> {
    await fetch(new URL(`/control/${what}`, this.url), { method: 'POST' });
  }

  /** Attempts to renew a token, and the resources of all tokens. */
  async seen(): Promise<{ readonly renewed: number; readonly resources: readonly (string | null)[] }> {
    return (await fetch(new URL('/control', this.url))).json();
  }
}

export const fileFor = ({ home }: Pick<Room, 'home'>, url: string): LoginFile =>
  new LoginFile(home, serverAddress(http(url)));

/** Logs in as a user does whose browser follows every redirect. */
export async function logIn(room: Pick<Room, 'home'>, settings: ReturnType<typeof http>): Promise<StoredLogin> {
  const { signal } = new AbortController();
  const login = await beginLogin({ home: room.home, settings, signal });
  try {
    const [stored] = await Promise.all([login.finished(), fetch(login.url).then((response) => response.text())]);
    return stored;
  } finally {
    await login.close();
  }
}
