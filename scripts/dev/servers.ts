/** The Hub and the agent server of `npm run dev`: the built product, with a home of its own. */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, existsSync, mkdirSync, openSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import type { AppServerRecord } from '../../src/protocol/index.ts';
import { dashboardToken } from '../../src/supervise/index.ts';
import { killTree } from '../process-tree.ts';
import { root, toolEnvironment } from '../toolchain.mjs';
import type { Upstream } from './proxy.ts';

/** A Hub stops its agent servers before it ends. */
const stopMs = 20_000;

const program = join(root, 'bin', 'oratorio.js');

export interface DevServersOptions {
  /** Directory of home, workspace and log. */
  readonly directory: string;
  readonly workspace: string;
  /** Called when the Hub ends without being stopped. */
  readonly onDeath: (message: string) => void;
}

export class DevServers {
  readonly logFile: string;
  readonly #options: DevServersOptions;
  readonly #home: string;
  readonly #env: NodeJS.ProcessEnv;
  #hub: ChildProcess | undefined;
  #hubUpstream: Upstream | undefined;
  #dashboardUpstream: Upstream | undefined;

  constructor(options: DevServersOptions) {
    this.#options = options;
    this.#home = join(options.directory, 'home');
    this.logFile = join(options.directory, 'hub.log');
    this.#env = { ...toolEnvironment(), ORATORIO_HOME: this.#home };
  }

  /** Undefined while the Hub does not serve. */
  readonly hub = (): Upstream | undefined => this.#hubUpstream;

  /** Undefined while the agent server does not run. */
  readonly dashboard = (): Upstream | undefined => this.#dashboardUpstream;

  /** Ends a Hub that a killed `npm run dev` left behind. */
  async stopLeftover(): Promise<void> {
    if (existsSync(join(this.#home, 'hub', 'hub.lock'))) await this.#oratorio('hub', 'stop').catch(() => undefined);
  }

  /** Starts the Hub and the agent server of the workspace. @throws Error when one of them does not come up */
  async start(): Promise<void> {
    mkdirSync(this.#home, { recursive: true, mode: 0o700 });
    const log = openSync(this.logFile, 'a', 0o600);
    // In a group of its own: Ctrl-C reaches this process only, which stops the Hub.
    const hub = spawn(process.execPath, [program, 'hub'], {
      cwd: this.#options.directory,
      env: this.#env,
      stdio: ['ignore', 'pipe', log],
      detached: true,
    });
    closeSync(log);
    this.#hub = hub;
    hub.once('exit', (code, signal) => this.#ended(hub, code ?? signal));
    // One line, once it serves.
    await new Promise((resolve) => {
      hub.stdout?.once('data', resolve);
      hub.once('exit', resolve);
    });
    if (this.#hub !== hub) throw new Error(`The Hub cannot start. Its log: ${this.logFile}`);
    this.#hubUpstream = await this.#page('inspect', '--print-url', '--no-start');
    await this.#oratorio('up', this.#options.workspace, '--init', '--no-follow', '--no-start');
    this.#dashboardUpstream = await this.#dashboard();
  }

  /** Stops the Hub with its agent servers; kills them when that takes longer than 20 s. */
  async stop(): Promise<void> {
    const hub = this.#hub;
    this.#forget();
    if (hub?.pid === undefined || hub.exitCode !== null || hub.signalCode !== null) return;
    const ended = once(hub, 'exit');
    const deadline = new AbortController();
    hub.kill('SIGTERM');
    const isLate = sleep(stopMs, true, { signal: deadline.signal }).catch(() => false);
    if ((await Promise.race([ended.then(() => false), isLate])) === true) killTree(hub.pid);
    deadline.abort();
    await ended;
  }

  #ended(hub: ChildProcess, how: number | string | null): void {
    // `stop` has forgotten the Hub that it stops.
    if (this.#hub !== hub) return;
    this.#forget();
    this.#options.onDeath(`The Hub ended (${how}). Its log: ${this.logFile}`);
  }

  #forget(): void {
    this.#hub = undefined;
    this.#hubUpstream = undefined;
    this.#dashboardUpstream = undefined;
  }

  /** Where a page is served, and the token that opens it. */
  async #page(...args: readonly string[]): Promise<Upstream> {
    const { origin, hash } = new URL((await this.#oratorio(...args)).trim());
    return { origin, token: new URLSearchParams(hash.slice(1)).get('token') ?? '' };
  }

  /** The dashboard at its own address: the Hub serves the page of a workspace below a path of its own. */
  async #dashboard(): Promise<Upstream> {
    const printed = await this.#oratorio('inspect', this.#options.workspace, '--json', '--no-start');
    const { canonicalWorkspacePath, endpoints } = JSON.parse(printed) as Pick<
      AppServerRecord,
      'canonicalWorkspacePath' | 'endpoints'
    >;
    const { origin } = new URL(endpoints['dashboard'] ?? '');
    return { origin, token: dashboardToken(this.#home, canonicalWorkspacePath) };
  }

  /** @throws Error with the output of a command that fails */
  async #oratorio(...args: readonly string[]): Promise<string> {
    const options = { cwd: this.#options.directory, env: this.#env };
    const { stdout } = await promisify(execFile)(process.execPath, [program, ...args], options);
    return stdout;
  }
}
