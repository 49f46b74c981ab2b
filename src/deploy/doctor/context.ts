import { join, relative } from 'node:path/posix';
import { gitEnvironment } from '../../git/index.ts';
import {
  type Engine,
  outputRedactorFor,
  printable,
  type Redactor,
  type RunOptions,
  type RunResult,
  runProgram,
  type ServiceState,
  serviceStates,
} from '../engine/index.ts';
import { DeployError } from '../errors.ts';
import { containerPaths, type EnvFile, parseEnv } from '../files/index.ts';
import { type AppClient, type AskedApp, appKeyIn, createAppClient, readApp } from '../github/index.ts';
import { classifyHost, type HostVerdict, type PublicHost } from '../host/index.ts';
import { layoutOf, type StackLayout } from '../layout.ts';
import { once } from '../once.ts';
import type { ServiceName } from '../stack-plan.ts';
import { type ConfigView, readConfig } from './config-view.ts';
import { gatewayHere } from './gateway.ts';
import { thisHost } from './host.ts';
import { limits } from './limits.ts';
import { type FileText, readTexts, type StackTexts, secretsOf, textOf, valueIn } from './stack-view.ts';
import type { DoctorOptions, GatewayAddress, HostProbes, RunGit } from './types.ts';

interface InsideOptions {
  /** Standard input: arguments can be seen by everybody on this host. */
  readonly input?: string;
  readonly signal: AbortSignal;
}

/**
 * Shared context of the checks. Files are read once, at the beginning; a query that several checks need is made once. Every
 * error is a `DeployError`, which the doctor turns into the finding of the check.
 */
export class DoctorContext {
  readonly layout: StackLayout;
  readonly shell: DoctorOptions['env'];
  readonly signal: AbortSignal;
  readonly isOffline: boolean;
  readonly timeoutMs: number;
  readonly host: HostProbes;
  readonly gateway: GatewayAddress;
  readonly texts: StackTexts;
  /** Null: `.env` is not there or cannot be read. */
  readonly env: EnvFile | null;
  readonly git: RunGit | DeployError;
  /** True when one of the two files of the webhook exists. */
  readonly hasIngress: boolean;
  /** Host that the gateway's file serves; null: none. */
  readonly gatewayHost: HostVerdict | null;
  readonly #engine: Engine | DeployError;
  readonly #config: ConfigView | DeployError;
  readonly #secrets: readonly string[];
  readonly #redact: Redactor;

  constructor(options: DoctorOptions, signal: AbortSignal) {
    this.layout = layoutOf(options.directory);
    this.shell = options.env;
    this.signal = signal;
    this.isOffline = options.isOffline ?? false;
    this.timeoutMs = options.timeoutMs ?? limits.checkMs;
    this.host = { ...thisHost, ...options.host };
    this.gateway = { ...gatewayHere, ...options.gateway };
    this.git = options.git ?? runGit;
    this.#engine = options.engine;
    this.texts = readTexts(this.layout);
    const { env, config, overlay, caddyfile } = this.texts;
    this.env = typeof env === 'string' ? parseEnv(env) : null;
    this.#config = readConfig(config);
    this.hasIngress = overlay !== null || caddyfile !== null;
    this.gatewayHost = publicHostIn(caddyfile);
    this.#secrets = secretsOf(this.layout, this.#keyText());
    this.#redact = outputRedactorFor(this.#secrets);
  }

  /** Makes one line of a text, without secrets and control characters. */
  clean(text: string): string {
    return this.#redact(printable(text));
  }

  /** @throws DeployError when it is missing */
  engine(): Engine {
    if (this.#engine instanceof DeployError) throw this.#engine;
    return this.#engine;
  }

  /** @throws DeployError why it cannot be used */
  config(): ConfigView {
    if (this.#config instanceof DeployError) throw this.#config;
    return this.#config;
  }

  /** Current configuration, or null. */
  configOrNull(): ConfigView | null {
    return this.#config instanceof DeployError ? null : this.#config;
  }

  /** @throws DeployError when it is missing */
  publicHost(): PublicHost {
    if (this.gatewayHost?.ok) return this.gatewayHost.host;
    throw new DeployError('notAStack', 'The Caddyfile does not say for which host it is.');
  }

  /** The App's key on this host; where it is by default while the configuration does not say. */
  keyFile(): string {
    const path = this.configOrNull()?.privateKeyPath ?? '';
    return path === '' ? this.layout.privateKey : this.onHost(path);
  }

  #keyText(): FileText {
    try {
      return textOf(this.keyFile());
    } catch (error) {
      // The path is in no mounted directory; a check reports this.
      if (error instanceof DeployError) return null;
      throw error;
    }
  }

  /** Value of `.env`, or its default. Empty: neither exists. */
  value(name: string): string {
    return this.env === null ? '' : valueIn(this.env, name);
  }

  /** Options of a query to the engine. */
  asking(signal: AbortSignal, timeoutMs: number = limits.askMs): RunOptions {
    return { timeoutMs, signal, secrets: this.#secrets };
  }

  /** States of all containers of the stack. They are asked for once. */
  readonly services: () => Promise<readonly ServiceState[]> = once(() =>
    serviceStates(this.engine(), this.layout, { signal: this.signal, secrets: this.#secrets }),
  );

  async service(name: ServiceName): Promise<ServiceState | undefined> {
    return (await this.services()).find(({ service }) => service === name);
  }

  /** Runs a program inside of a running container. */
  async inside(service: ServiceName, program: readonly string[], options: InsideOptions): Promise<RunResult> {
    const state = await this.service(service);
    if (state === undefined) throw new DeployError('engineFailed', `There is no container of ${service}.`);
    const { input, signal } = options;
    const command = ['exec', ...(input === undefined ? [] : ['--interactive']), state.container, ...program];
    return this.engine().run(command, { ...this.asking(signal), ...(input !== undefined && { input }) });
  }

  /** The App's client; makes one without asking anything. */
  readonly app: () => AppClient = once(() => {
    const { endpoint, appId } = this.config();
    if (appId === null) throw new DeployError('notAStack', 'GitHub.AppId is not set.');
    const privateKey = appKeyIn(this.keyFile());
    return createAppClient({ endpoint, appId, privateKey, timeoutMs: limits.askMs, signal: this.signal });
  });

  readonly appFacts: () => Promise<AskedApp> = once(() => readApp(this.app()));

  /** Path on this host for the backend's `path`. @throws DeployError when it is in no mounted directory */
  onHost(path: string): string {
    for (const [inside, outside] of [
      [containerPaths.workspace, this.layout.workspace],
      [containerPaths.secrets, this.layout.secrets],
    ] as const) {
      const rest = relative(inside, path);
      if (rest !== '..' && !rest.startsWith('../')) return join(outside, rest);
    }
    throw new DeployError(
      'notAStack',
      `${path} is neither below ${containerPaths.workspace} nor ${containerPaths.secrets}.`,
    );
  }
}

/** Head of a site's block in the Caddyfile: a line of one address and `{`. */
const site = /^(?:https:\/\/)?([^\s{}():@#]+|\[[0-9a-fA-F:.]+\]) \{$/m;

/** Reads the gateway's host from its Caddyfile. @returns null: the file is missing, cannot be read or names none */
export function publicHostIn(caddyfile: FileText): HostVerdict | null {
  if (typeof caddyfile !== 'string') return null;
  const [, name] = site.exec(caddyfile) ?? [];
  if (name === undefined) return null;
  // The command that wrote the file has already refused test names where they are not allowed.
  return classifyHost(name.replace(/^\[|\]$/g, ''), { allowTestNames: true });
}

/** Runs the host's git, which may not prompt, in no repository. @throws DeployError gitMissing */
async function runGit(...[args, options]: Parameters<RunGit>): ReturnType<RunGit> {
  try {
    return await runProgram({
      program: 'git',
      name: 'git',
      args,
      env: gitEnvironment(process.env),
      cwd: '/',
      ...options,
    });
  } catch (error) {
    if (!(error instanceof DeployError) || error.code !== 'engineMissing') throw error;
    throw new DeployError('gitMissing', 'git is not installed.', 'Install it: apt-get install git');
  }
}
