/** `npm run dev`: rebuilds, restarts and reloads the parts that a change of the sources concerns. */
import { mkdirSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { DevProxy } from './dev/proxy.ts';
import { missingParts, type Part, partsOf, rebuild } from './dev/rebuild.ts';
import { DevServers } from './dev/servers.ts';
import { onEndSignal } from './signals.ts';
import { root } from './toolchain.mjs';
import { watchSources } from './watch-sources.ts';

const usage = `Usage: npm run dev [-- OPTIONS]

Runs a Hub and an agent server from dist/, and watches src/ and machines/:
  a change of the page     rebuilds it and reloads the browser
  any other change         rebuilds the programs, restarts both, then reloads the browser
Everything lies in .dev/: home, workspace, hub.log. Your own Hub is not touched.

  --port PORT              port of the Hub's page, 0 for a free one; default: 5180
  --dashboard-port PORT    port of the workspace's page, 0 for a free one; default: 5181
  --workspace DIR          workspace directory; default: .dev/workspace
  --help                   print this

Ctrl-C ends everything. Exit code: 0 when it was ended, 1 when it cannot start, 2 for wrong arguments.`;

interface DevOptions {
  readonly port: number;
  readonly dashboardPort: number;
  readonly workspace: string;
}

const directory = join(root, '.dev');

class UsageError extends Error {}

function portOf(name: string, text: string): number {
  const port = Number(text);
  if (!/^\d+$/.test(text) || port > 65_535)
    throw new UsageError(`--${name} must be a port from 0 to 65535, not ${text}.`);
  return port;
}

/** @returns undefined when the help was asked for. @throws UsageError or TypeError for wrong arguments */
function readOptions(): DevOptions | undefined {
  const { values } = parseArgs({
    options: {
      port: { type: 'string', default: '5180' },
      'dashboard-port': { type: 'string', default: '5181' },
      workspace: { type: 'string', default: join(directory, 'workspace') },
      help: { type: 'boolean' },
    },
  });
  if (values.help) return undefined;
  return {
    port: portOf('port', values.port),
    dashboardPort: portOf('dashboard-port', values['dashboard-port']),
    workspace: resolve(process.env['INIT_CWD'] ?? root, values.workspace),
  };
}

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

/** Builds and restarts, one change after the other. */
class DevLoop {
  readonly #servers: DevServers;
  readonly #proxies: readonly DevProxy[];
  #changed = new Set<string>();
  #work: Promise<void> = Promise.resolve();
  #isEnding = false;

  constructor(servers: DevServers, proxies: readonly DevProxy[]) {
    this.#servers = servers;
    this.#proxies = proxies;
  }

  /** Builds the missing parts and starts the servers. `signal`: no further step begins, and a starting Hub is stopped. */
  async begin(signal: AbortSignal): Promise<void> {
    await this.#servers.stopLeftover();
    for (const part of missingParts()) if (!signal.aborted) await rebuild(part);
    if (signal.aborted) return;
    const stop = () => void this.#servers.stop();
    signal.addEventListener('abort', stop, { once: true });
    await this.#servers.start();
    signal.removeEventListener('abort', stop);
  }

  /** @param files changed files, relative to the root */
  changed(files: ReadonlySet<string>): void {
    for (const file of files) this.#changed.add(file);
    this.#work = this.#work.then(() => this.#apply());
  }

  async end(): Promise<void> {
    this.#isEnding = true;
    await this.#work;
    await this.#servers.stop();
    for (const proxy of this.#proxies) proxy.close();
  }

  async #apply(): Promise<void> {
    const files = this.#changed;
    this.#changed = new Set();
    const parts = partsOf(files);
    if (parts.length === 0 || this.#isEnding) return;
    console.log(`${[...files].slice(0, 3).join(', ')}${files.size > 3 ? ', …' : ''} changed`);
    try {
      await this.#bringUpToDate(parts);
    } catch (error) {
      console.error(`✖ ${messageOf(error)}\n  The page and the programs do not change until the next correct build.`);
    }
  }

  async #bringUpToDate(parts: readonly Part[]): Promise<void> {
    for (const part of parts) await rebuild(part);
    if (parts.some((part) => part !== 'page')) {
      await this.#servers.stop();
      await this.#servers.start();
      console.log('Restarted the Hub and the agent server');
    }
    for (const proxy of this.#proxies) proxy.reload();
    console.log('Reloaded the page');
  }
}

/** @returns the exit code */
async function run({ port, dashboardPort, workspace }: DevOptions): Promise<number> {
  const signal = onEndSignal();
  mkdirSync(directory, { recursive: true });
  const servers = new DevServers({ directory, workspace, onDeath: (message) => console.error(`✖ ${message}`) });
  const hub = new DevProxy({ role: 'hub', page: '', port, upstream: servers.hub });
  const dashboard = new DevProxy({
    role: 'dashboard',
    page: '/DashBoard',
    port: dashboardPort,
    upstream: servers.dashboard,
  });
  const loop = new DevLoop(servers, [hub, dashboard]);
  const watcher = watchSources(['src', 'machines'], (files) => loop.changed(files));
  try {
    await hub.listen();
    await dashboard.listen();
    await loop.begin(signal);
    if (!signal.aborted) {
      console.log(`Hub        ${hub.address}\nWorkspace  ${dashboard.address}\nLog        ${servers.logFile}`);
      console.log('Watching src/ and machines/; Ctrl-C ends everything.');
      await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
    }
    return 0;
  } catch (error) {
    if (signal.aborted) return 0;
    const isTaken = (error as NodeJS.ErrnoException).code === 'EADDRINUSE';
    console.error(`✖ ${messageOf(error)}${isTaken ? '\n  Choose other ports with --port and --dashboard-port.' : ''}`);
    return 1;
  } finally {
    watcher.close();
    await loop.end();
  }
}

async function main(): Promise<number> {
  try {
    const options = readOptions();
    if (options) return await run(options);
    console.log(usage);
    return 0;
  } catch (error) {
    if (!(error instanceof UsageError) && !(error instanceof TypeError)) throw error;
    console.error(error.message);
    return 2;
  }
}

process.exitCode = await main();
