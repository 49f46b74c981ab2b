/** The agent server as its own process, for the benchmarks of the runtime. */
import { mkdirSync, realpathSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { join } from 'node:path';
import { ensureStateDirectory } from '../src/config/index.ts';
import type { AppServerLock } from '../src/protocol/index.ts';
import { dashboardToken, readAppServer, workspaceFiles } from '../src/supervise/index.ts';
import { start, until } from './harness.ts';
import { makePlace, type Place } from './hub.ts';

const ownProgram = join(import.meta.dirname, '..', 'dist', 'appserver', 'main.cjs');

export interface AgentServer {
  readonly pid: number;
  readonly url: string;
  readonly workspacePath: string;
  /** Origin of its Dashboard, and the token for it. */
  readonly dashboard: { readonly origin: string; readonly token: string };
  /** From spawning the process to the first answer of `GET /readyz`. */
  readonly readyMs: number;
  stop(): Promise<void>;
}

export interface AgentServerOptions {
  /** Configuration of the user. */
  readonly config: unknown;
  /** Fills the workspace, and the directory of its state, before the server starts. */
  readonly prepare?: (workspacePath: string, stateDirectory: string) => void;
  readonly core?: number;
  /** Program of the agent server; default: this build. */
  readonly program?: string | undefined;
  /** Directory of compiled code, as the Hub names one. */
  readonly compileCache?: string | undefined;
}

function published(home: string, workspacePath: string, pid: number): AppServerLock | undefined {
  const found = readAppServer(workspaceFiles(home, realpathSync.native(workspacePath)));
  return found.kind === 'ok' && found.value.pid === pid ? found.value : undefined;
}

export const getOk = (url: string): Promise<true | undefined> =>
  new Promise((resolve) => {
    const asked = request(url, { agent: false }, (response) => {
      response.resume().once('end', () => resolve(response.statusCode === 200 || undefined));
    });
    asked.once('error', () => resolve(undefined)).end();
  });

function makeWorkspace(place: Place, { config, prepare }: AgentServerOptions): string {
  const workspacePath = place.workspace('runtime');
  mkdirSync(place.home, { recursive: true, mode: 0o700 });
  writeFileSync(join(place.home, 'config.json'), JSON.stringify(config), { mode: 0o600 });
  prepare?.(workspacePath, ensureStateDirectory(place.home, realpathSync.native(workspacePath)));
  return workspacePath;
}

/** Starts the built agent server in a workspace of its own. */
export async function startAgentServer(options: AgentServerOptions): Promise<AgentServer> {
  const place = makePlace();
  const workspacePath = makeWorkspace(place, options);
  const { program = ownProgram } = options;
  const from = performance.now();
  const { pid, child, stop } = start({
    command: process.execPath,
    args: ['--disable-warning=ExperimentalWarning', program, '--workspace', workspacePath],
    ...(options.core !== undefined && { core: options.core }),
    env: {
      ORATORIO_HOME: place.home,
      ...(options.compileCache !== undefined && { NODE_COMPILE_CACHE: options.compileCache }),
    },
  });
  child.stdout?.resume();
  const lock = await until('the agent server', 30_000, 1, async () => published(place.home, workspacePath, pid));
  const url = lock.endpoints.appServerWebSocket;
  const { host } = new URL(url);
  await until('the agent server', 5_000, 1, () => getOk(`http://${host}/readyz`));
  return {
    pid,
    url,
    workspacePath,
    dashboard: {
      origin: new URL(lock.endpoints['dashboard'] ?? 'http://127.0.0.1').origin,
      token: dashboardToken(place.home, realpathSync.native(workspacePath)),
    },
    readyMs: performance.now() - from,
    async stop() {
      await stop();
      place.remove();
    },
  };
}
