/** The agent server as its own process, for the benchmarks of the runtime. */
import { readFileSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { join } from 'node:path';
import * as v from 'valibot';
import { AppServerLock } from '../src/protocol/index.ts';
import { start, until } from './harness.ts';
import { makePlace, type Place } from './hub.ts';

const program = join(import.meta.dirname, '..', 'dist', 'appserver', 'main.cjs');

export interface AgentServer {
  readonly pid: number;
  readonly url: string;
  readonly workspacePath: string;
  /** From spawning the process to the first answer of `GET /readyz`. */
  readonly readyMs: number;
  stop(): Promise<void>;
}

export interface AgentServerOptions {
  /** Of the workspace. */
  readonly config: unknown;
  /** Fills the workspace before the server starts. */
  readonly prepare?: (workspacePath: string) => void;
  readonly core?: number;
}

function published(workspacePath: string, pid: number): AppServerLock | undefined {
  try {
    const text = readFileSync(join(workspacePath, '.oratorio', 'appserver.lock'), 'utf8');
    const lock = v.parse(AppServerLock, JSON.parse(text));
    return lock.pid === pid ? lock : undefined;
  } catch {
    return undefined;
  }
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
  writeFileSync(join(workspacePath, '.oratorio', 'config.json'), JSON.stringify(config), { mode: 0o600 });
  prepare?.(workspacePath);
  return workspacePath;
}

/** Starts the built agent server in a workspace of its own. */
export async function startAgentServer(options: AgentServerOptions): Promise<AgentServer> {
  const place = makePlace();
  const workspacePath = makeWorkspace(place, options);
  const from = performance.now();
  const { pid, child, stop } = start({
    command: process.execPath,
    args: ['--disable-warning=ExperimentalWarning', program, '--workspace', workspacePath],
    ...(options.core !== undefined && { core: options.core }),
    env: { ORATORIO_HOME: place.home },
  });
  child.stdout?.resume();
  const lock = await until('the agent server', 30_000, 1, async () => published(workspacePath, pid));
  const url = lock.endpoints.appServerWebSocket;
  const { host } = new URL(url);
  await until('the agent server', 5_000, 1, () => getOk(`http://${host}/readyz`));
  return {
    pid,
    url,
    workspacePath,
    readyMs: performance.now() - from,
    async stop() {
      await stop();
      place.remove();
    },
  };
}
