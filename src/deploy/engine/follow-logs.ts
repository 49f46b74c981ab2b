import { setTimeout as sleep } from 'node:timers/promises';
import { defaults } from '../defaults.ts';
import { DeployError } from '../errors.ts';
import type { StackLayout } from '../layout.ts';
import type { ServiceName } from '../stack-plan.ts';
import { readProject } from './compose-project.ts';
import { failureOf } from './operation.ts';
import { serviceStates } from './service-states.ts';
import type { Engine, ServiceState } from './types.ts';

export interface LogOptions {
  /** Continue until `signal` aborts, also through restarts. Without a container at the beginning there is nothing to follow. */
  readonly follow?: boolean;
  /** Lines of the past, of each service. */
  readonly tail?: number;
  /** A time (ISO 8601) or an age (`10m`), as the engine takes it. */
  readonly since?: string;
  /** Empty: all. */
  readonly services?: readonly ServiceName[];
  /** The engine's time before each line. */
  readonly timestamps?: boolean;
  readonly secrets?: readonly string[];
  /** Pause between two polls for restarted services, in milliseconds. */
  readonly pollMs?: number;
}

/** A day at a time: the engine's own command ends when its container does. */
const longestMs = 24 * 3_600_000;

/**
 * Passes on the output of a stack's services, line by line as it arrives, without secrets and control characters. Reads from the
 * engine, because Compose v1 lacks `--since`. Resolves at the end of the logs or, when following, when `signal` aborts.
 * @throws DeployError engineFailed, notAStack
 */
export async function followLogs(
  engine: Engine,
  stack: StackLayout,
  options: LogOptions,
  onLine: (line: string, service: ServiceName) => void,
  signal: AbortSignal,
): Promise<void> {
  const follower = new Follower(engine, stack, options, onLine, signal);
  await (options.follow ? follower.follow() : follower.tell());
}

class Follower {
  readonly #engine: Engine;
  readonly #stack: StackLayout;
  readonly #options: LogOptions;
  readonly #onLine: (line: string, service: ServiceName) => void;
  readonly #signal: AbortSignal;
  readonly #secrets: readonly string[];
  readonly #running = new Map<ServiceName, Promise<void>>();
  /** The starts that were followed, each once. */
  readonly #seen = new Set<string>();
  #failure: unknown;

  constructor(
    engine: Engine,
    stack: StackLayout,
    options: LogOptions,
    onLine: (line: string, service: ServiceName) => void,
    signal: AbortSignal,
  ) {
    this.#engine = engine;
    this.#stack = stack;
    this.#options = options;
    this.#onLine = onLine;
    this.#signal = signal;
    this.#secrets = [...(options.secrets ?? []), ...readProject(stack).secrets];
  }

  /** Reads the present logs, one service after the other. */
  async tell(): Promise<void> {
    for (const state of await this.#states()) await this.#read(state, this.#past());
  }

  async follow(): Promise<void> {
    const { pollMs = defaults.timeouts.healthPollMs } = this.#options;
    try {
      let states = await this.#states();
      if (states.length === 0) return;
      // Later there may be no container for a while: one is removed before it is made anew.
      for (; !this.#signal.aborted; states = await this.#states()) {
        for (const state of states) this.#begin(state);
        if (this.#failure !== undefined) throw this.#failure;
        await sleep(pollMs, undefined, { signal: this.#signal });
      }
    } catch (error) {
      if (!this.#signal.aborted) throw error;
    } finally {
      await Promise.all(this.#running.values());
    }
  }

  /** Follows a start of a service that is not followed yet. Of a later one, only what came since. */
  #begin(state: ServiceState): void {
    const { service, container, startedAt } = state;
    const start = `${container} ${startedAt}`;
    if (this.#running.has(service) || this.#seen.has(start)) return;
    const isFirst = ![...this.#seen].some((each) => each.startsWith(`${container} `));
    this.#seen.add(start);
    const words = isFirst ? this.#past() : ['--since', startedAt ?? '0s'];
    const reading = this.#read(state, ['--follow', ...words])
      .catch((error: unknown) => {
        this.#failure ??= error;
      })
      .finally(() => this.#running.delete(service));
    this.#running.set(service, reading);
  }

  async #read({ service, container }: ServiceState, words: readonly string[]): Promise<void> {
    const stamps = this.#options.timestamps ? ['--timestamps'] : [];
    const result = await this.#engine.run(['logs', ...words, ...stamps, container], {
      timeoutMs: longestMs,
      secrets: this.#secrets,
      signal: this.#signal,
      onLine: (line) => this.#onLine(line, service),
    });
    // One that was removed meanwhile has nothing more to say.
    if (result.exitCode === 0 || /no such container/i.test(result.stderr)) return;
    throw failureOf(`Reading the log of ${service}`, result, 'engineFailed');
  }

  async #states(): Promise<ServiceState[]> {
    const states = await serviceStates(this.#engine, this.#stack, { signal: this.#signal, secrets: this.#secrets });
    const { services = [] } = this.#options;
    return services.length === 0 ? states : states.filter(({ service }) => services.includes(service));
  }

  #past(): string[] {
    const { tail = defaults.logLines, since } = this.#options;
    if (since !== undefined && !/^[\w.:+-]+$/.test(since)) {
      throw new DeployError(
        'invalidInput',
        `--since ${since} is neither a time nor an age.`,
        'E.g. 10m, 2h, 2026-01-31T12:00:00Z',
      );
    }
    return ['--tail', String(tail), ...(since === undefined ? [] : ['--since', since])];
  }
}
